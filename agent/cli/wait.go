package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

func waitCommand() *command.Command {
	var o client.WaitOptions
	var all bool
	return &command.Command{
		Name: "wait", Args: "POD ... | --all | -l LABELS", Usage: "wait until pods are ready, or what else they are to come to",
		About: `
What can be waited for: ready, running, succeeded, failed, completed (one or the other),
gone, and condition=TYPE[=STATUS], such as condition=Initialized. A pod that is not known
is waited for, too, and so is an agent that does not run.

Exit codes: 0: all pods have come to it; 1: one of them never will, as a pod that has
failed will not be ready; 124: the time was over.`,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&o.For, "for", "ready", "the `OUTCOME` to wait for")
			f.DurationVar(&o.Timeout, "timeout", 0, "the longest `TIME` to wait, such as 90s; 0: no limit")
			f.BoolVar(&all, "all", false, "wait for all pods")
			command.NamespaceFlag(f, &o.Choice.Namespace)
			command.SelectorFlag(f, &o.Choice.Selector)
			command.SocketFlag(f, &o.Socket)
		},
		Run: func(ctx context.Context, c *command.Call) error {
			o.Choice.Names, o.Out, o.Err = c.Args, c.Out, c.Err
			switch {
			case len(c.Args) == 0 && !all && o.Choice.Selector == "":
				return command.UsageError("wait for which pods? Name them, or give --all or -l LABELS")
			case len(c.Args) > 0 && all:
				return command.UsageError("name pods or give --all, not both")
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it is less than no time", o.Timeout)
			}
			if err := o.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			return waited(ctx, client.Wait(ctx, o))
		},
	}
}

// waited gives the end of a wait that came to nothing its exit code.
func waited(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, client.ErrTimeout):
		return command.Exit(exitLate, "%v", err)
	case err != nil && ctx.Err() != nil:
		return command.Exit(exitInterrupted, "")
	}
	return err
}
