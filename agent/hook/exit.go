package hook

import (
	"errors"
	"fmt"
)

// ExitError is a command that failed. What it wrote is for the log only: it may
// hold what a status must not.
type ExitError struct {
	Code   int32
	Output string
}

func (e *ExitError) Error() string { return fmt.Sprintf("exec: the command exited with %d", e.Code) }

// outputLimit is how much of a command's output is logged, in bytes.
const outputLimit = 1024

// Output returns the end of what a failed command wrote.
func Output(err error) string {
	var e *ExitError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Output[max(0, len(e.Output)-outputLimit):]
}
