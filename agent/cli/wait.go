package cli

import (
	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/wait"
)

func waitCommand() *cli.Command {
	var o wait.Options
	return &cli.Command{
		Name: "wait", ArgsUsage: "POD|FILE ... | --all | -l LABELS",
		Usage: "wait until pods or manifest files are ready, or what else they are to come to",
		Description: `
An OUTCOME is ready, running, succeeded, failed, completed (one or the other),
gone (or delete), or condition=TYPE[=STATUS], such as condition=Initialized. The
command waits for a pod that the agent does not know, too, and for an agent that
does not run.
With --all or -l a pod that has succeeded is done, and counts as ready.

A FILE is a manifest in the agent's folder, or a copy of one: the file of the
same name there is meant. The OUTCOME of a file is accepted: the agent has read
just what FILE says when the wait begins, and takes it; updated: that runs and
works; ready: it is accepted, and its pods are ready, be it in an earlier version;
removed: the file and its pods are gone. A file that is rejected ends the wait. A
POD is updated once the newest version that was accepted is the one that runs, and
works.

With updateHealth, or the pod's annotation monopod.update-health, a version
works once its trial says so, and one that is rolled back never does: then the
command prints the reason with what it wrote last. Without a trial it works once
it has been ready for updateStable, or has succeeded. When the time is over the
command prints what monopod ps says of the pod.

Exit codes: 0: all have the outcome; 1: one of them never will, as a pod that has
failed will not be ready; 124: the time was over.`,
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
			if o.For == client.Deleted {
				o.For = "gone"
			}
			o.Choice.Names, o.Out, o.Err = c.Args().Slice(), c.App.Writer, c.App.ErrWriter
			all := c.Bool("all")
			switch {
			case c.NArg() == 0 && !all && o.Choice.Selector == "":
				return command.UsageError("wait for which pods? Name them or their files, or give --all or -l LABELS")
			case c.NArg() > 0 && all:
				return command.UsageError("name pods or give --all, not both")
			case o.Timeout < 0:
				return command.UsageError("--timeout %s: it must not be negative", o.Timeout)
			}
			if err := o.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			return command.Waited(c.Context, wait.Run(c.Context, o))
		},
	}
}
