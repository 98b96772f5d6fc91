package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// CommandError is an error that the command itself caused: a failure, while other errors mean
// nothing about the container.
type CommandError struct{ Words string }

func (e *CommandError) Error() string { return e.Words }

// command succeeds when the command exits with 0.
func command(ctx context.Context, t *Target, cmd []string, timeout time.Duration, exec Exec) (Outcome, error) {
	output, code, err := exec(ctx, t, cmd, timeout)
	var own *CommandError
	switch {
	case errors.As(err, &own):
		return Outcome{Failure, own.Words}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return Outcome{Failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(cmd, " "), timeout)}, nil
	case err != nil:
		return Outcome{}, err
	case code == 0:
		return Outcome{Success, output}, nil
	case strings.TrimSpace(output) == "":
		return Outcome{Failure, fmt.Sprintf("command exited with %d", code)}, nil
	}
	return Outcome{Failure, output}, nil
}
