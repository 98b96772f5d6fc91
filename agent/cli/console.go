package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/terminal"
	"monopod/agent/stream"
)

// wants is what a command in a container needs of this process' own streams beside its outputs.
type wants struct {
	input  bool
	tty    bool
	redraw bool // another size is sent first, so that programs draw again
}

// onConsole runs run with this process' own streams, and returns its result as an exit code. The
// terminal is as before then, also after a signal.
func onConsole(c *cli.Context, w wants, run func(context.Context, stream.Streams) (int, error)) error {
	signal.Ignore(syscall.SIGPIPE) // a closed output is an error, after which the terminal is restored
	ctx, stop := terminal.UntilSignal(context.WithoutCancel(c.Context))
	defer stop()
	s := stream.Streams{Out: c.App.Writer, Err: c.App.ErrWriter, TTY: w.tty}
	if w.input {
		s.In = c.App.Reader
	}
	keys, typed := c.App.Reader.(*os.File)
	typed = typed && terminal.Is(keys)
	if w.tty && w.input && !typed {
		fmt.Fprintln(c.App.ErrWriter, "monopod: standard input is no terminal: the command gets none either")
		w.tty, s.TTY = false, false
	}
	restore := func() {}
	if w.tty {
		screen, _ := c.App.Writer.(*os.File)
		if typed && !terminal.Is(screen) {
			screen = keys
		}
		sizes, unwatch := terminal.Sizes(screen, w.redraw)
		defer unwatch()
		s.Sizes = sizes
		if w.input {
			var err error
			if restore, err = terminal.Raw(keys); err != nil {
				return err
			}
			defer restore()
		}
	}
	code, err := run(ctx, s)
	restore()
	if signaled := (*terminal.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		err = signaled // also if it interrupted a call
	}
	return ended(code, err)
}

// ended turns the result of a command in a container into an exit code.
func ended(code int, err error) error {
	var signaled *terminal.Interrupted
	var start *stream.StartError
	var output *stream.OutputError // a connection to the runtime that broke may be an EPIPE, too
	switch {
	case err == nil && code == 0:
		return nil
	case err == nil:
		return cli.Exit("", code)
	case errors.As(err, &signaled):
		return cli.Exit("", signaled.ExitCode())
	case errors.As(err, &output) && (errors.Is(output, syscall.EPIPE) || errors.Is(output, io.ErrClosedPipe)):
		return cli.Exit("", 128+int(syscall.SIGPIPE))
	case errors.As(err, &start) && start.Code != 0:
		return cli.Exit(err, start.Code)
	}
	return err
}
