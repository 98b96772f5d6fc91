package cli

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"monopod/agent/cli/command"
	"monopod/agent/stream"
)

// A pipe whose reader has left ends a command without a word, as a signal would. That the runtime has
// left is said.
func TestOnlyTheReaderOfTheOutputEndsACommandWithoutAWord(t *testing.T) {
	lost := fmt.Errorf("open the stream stdin: %w", syscall.EPIPE)
	for what, row := range map[string]struct {
		err  error
		code int
		says string
	}{
		"a pipe is closed":                {&stream.OutputError{Err: syscall.EPIPE}, 128 + int(syscall.SIGPIPE), ""},
		"a pipe of this process is":       {errors.Join(nil, &stream.OutputError{Err: io.ErrClosedPipe}), 128 + int(syscall.SIGPIPE), ""},
		"the disk of the output is full":  {&stream.OutputError{Err: syscall.ENOSPC}, command.ExitFailed, "no space left on device"},
		"the runtime ends the connection": {lost, command.ExitFailed, lost.Error()},
	} {
		err := ended(0, row.err)
		if code := command.ExitCode(err); code != row.code || err.Error() != row.says {
			t.Errorf("%s: it ends with %d and %q, want %d and %q", what, code, err, row.code, row.says)
		}
	}
}
