package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
	"monopod/agent/stream"
)

func execCommand() *command {
	var o acli.ExecOptions
	var input, tty bool
	return &command{
		name: "exec", args: "POD -- COMMAND ...", usage: "run a command in a container",
		about: `
The command's standard input is empty unless -i is given; -t gives it a terminal, of this
one's size. It is run by the runtime itself, which is asked at a loopback address: this
needs root, and works while the agent does not run. Without -c it runs in the container
that the annotation kubectl.kubernetes.io/default-container names, else in the first one.

Ctrl-C reaches the command with -t; without, monopod ends and the command runs on until it
finds its input or output closed.

The exit code is the command's own. 127: there is no such command in the container; 126:
it cannot be executed; 1: the pod is not known, the container does not run, or the runtime
did not do it; 128 and its number: a signal ended monopod.`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&input, "stdin", "i", false, "pass standard input on")
			f.BoolVarP(&tty, "tty", "t", false, "give the command a terminal")
			f.StringVarP(&o.Container, "container", "c", "", "the `NAME` of the container")
			namespaceFlag(f, &o.Namespace)
			f.StringVar(&o.Endpoint, "runtime-endpoint", "", "the CRI runtime's socket, unix://`PATH` (default: the agent's, else containerd's or CRI-O's)")
			sourceFlags(f, &o.Source)
		},
		run: func(ctx context.Context, c *call) error {
			switch {
			case len(c.args) == 0 || c.dash == 0:
				return exit(exitUsage, "exec in which pod? As in `monopod exec web -- ls /`")
			case c.dash != 1 || len(c.args) < 2:
				return exit(exitUsage, "the command goes behind --, as in `monopod exec %s -- ls /`", c.args[0])
			}
			o.Pod, o.Command = c.args[0], c.args[1:]
			return runExec(ctx, c, o, input, tty)
		},
	}
}

// runExec connects the command with this process' own streams.
func runExec(ctx context.Context, c *call, o acli.ExecOptions, input, tty bool) error {
	signal.Ignore(syscall.SIGPIPE) // a closed output is an error, after which the terminal is restored
	ctx, stop := acli.UntilSignal(context.WithoutCancel(ctx))
	defer stop()
	o.Streams = stream.Streams{Out: c.out, Err: c.err, TTY: tty}
	if input {
		o.Streams.In = c.in
	}
	keys, typed := c.in.(*os.File)
	typed = typed && acli.IsTerminal(keys)
	if tty && input && !typed {
		fmt.Fprintln(c.err, "monopod: standard input is no terminal: the command gets none either")
		tty, o.Streams.TTY = false, false
	}
	restore := func() {}
	if tty {
		screen := c.out
		if typed && !acli.IsTerminal(screen) {
			screen = keys
		}
		sizes, unwatch := acli.TerminalSizes(screen)
		defer unwatch()
		o.Streams.Sizes = sizes
		if input {
			var err error
			if restore, err = acli.RawTerminal(keys); err != nil {
				return err
			}
			defer restore()
		}
	}
	code, err := acli.Exec(ctx, o)
	restore()
	if signaled := (*acli.Interrupted)(nil); errors.As(context.Cause(ctx), &signaled) {
		err = signaled // whatever it broke off
	}
	return execEnd(code, err)
}

// execEnd makes an exit code of how a command ended.
func execEnd(code int, err error) error {
	var signaled *acli.Interrupted
	var start *stream.StartError
	switch {
	case err == nil && code == 0:
		return nil
	case err == nil:
		return exit(code, "")
	case errors.As(err, &signaled):
		return exit(signaled.ExitCode(), "")
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		return exit(128+int(syscall.SIGPIPE), "")
	case errors.As(err, &start) && start.Code != 0:
		return exit(start.Code, "%v", err)
	}
	return err
}
