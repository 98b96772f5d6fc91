package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
)

func waitCommand() *cli.Command {
	var o client.WaitOptions
	return &cli.Command{
		Name: "wait", ArgsUsage: "POD ... | --all | -l LABELS",
		Usage: "wait until pods are ready, or what else they are to come to",
		Description: `
What can be waited for: ready, running, succeeded, failed, completed (one or
the other), gone, and condition=TYPE[=STATUS], such as condition=Initialized. A
pod that is not known is waited for, too, and so is an agent that does not run.
With --all or -l a pod that has succeeded is done, and counts as ready.

Exit codes: 0: all pods have come to it; 1: one of them never will, as a pod
that has failed will not be ready; 124: the time was over.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "for", Value: "ready", Destination: &o.For, Usage: "the `OUTCOME` to wait for"},
			&cli.DurationFlag{Name: "timeout", Destination: &o.Timeout,
				Usage: "the longest `TIME` to wait, such as 90s; 0: no limit"},
			&cli.BoolFlag{Name: "all", Usage: "wait for all pods"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.SelectorFlag(&o.Choice.Selector),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			o.Choice.Names, o.Out, o.Err = c.Args().Slice(), c.App.Writer, c.App.ErrWriter
			all := c.Bool("all")
			switch {
			case c.NArg() == 0 && !all && o.Choice.Selector == "":
				return command.UsageError("wait for which pods? Name them, or give --all or -l LABELS")
			case c.NArg() > 0 && all:
				return command.UsageError("name pods or give --all, not both")
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it is less than no time", o.Timeout)
			}
			if err := o.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			return waited(c.Context, client.Wait(c.Context, o))
		},
	}
}

// waited gives the end of a wait that came to nothing its exit code.
func waited(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, client.ErrTimeout):
		return cli.Exit(err, exitLate)
	case err != nil && ctx.Err() != nil:
		return cli.Exit("", exitInterrupted)
	}
	return err
}
