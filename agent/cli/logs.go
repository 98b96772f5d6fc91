package cli

import (
	"context"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/cli/logs"
	"monopod/agent/print"
)

func logsCommand() *cli.Command {
	var o logs.Options
	return &cli.Command{
		Name: "logs", ArgsUsage: "POD [CONTAINER] | -l SELECTOR | -A", Usage: "print the logs of containers",
		Description: `
With -A alone the logs are those of all pods. Without a container, it is the one that the annotation
kubectl.kubernetes.io/default-container names, else the first. The log is that
of the container's last start, with all that was set aside of it by rotation;
--previous is that of the start before. Logs of several containers come in the
order of time.

With -f, lines are printed as they come, over rotations and restarts, and on
with the pod that replaces one of the name, until the container has ended for
good or its pod is gone. Logs are read from their
files: this needs root, and works while the agent does not run.

Exit codes: 0; 1: no such pod, container or log; 2: wrong flags; 130 and 143:
ended by SIGINT (Ctrl-C) and SIGTERM.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Destination: &o.Follow,
				Usage: "go on with lines as they come"},
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Destination: &o.Previous,
				Usage: "the log of the start before"},
			&cli.Int64Flag{Name: "tail", Value: -1, Usage: "only the last `N` lines of each container; -1 for all"},
			&cli.DurationFlag{Name: "since", Usage: "only lines of the last `DURATION`, such as 90s, 5m or 2h"},
			&cli.StringFlag{Name: "since-time", Usage: "only lines since the `TIME`, such as 2026-05-04T12:00:00Z"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Destination: &o.Timestamps, Usage: "put the time before each line"},
			&cli.StringSliceFlag{Name: "container", Aliases: []string{"c"}, KeepSpace: true,
				Usage: "the `NAME` of a container; may be repeated"},
			&cli.BoolFlag{Name: "all-containers", Destination: &o.AllContainers,
				Usage: "all containers of the pods, init containers included"},
			command.SelectorFlag(&o.Selector),
			command.NamespaceFlag(&o.Namespace),
			command.AllNamespacesFlag(&o.All),
			&cli.BoolFlag{Name: "prefix", Usage: "put pod and container before each line (default: if there are several)"},
			&cli.BoolFlag{Name: "no-color", Usage: "no colours on a terminal; so does the variable NO_COLOR"},
			command.SocketFlag(&o.Socket),
			command.RootFlag(&o.Root),
			&cli.StringFlag{Name: "pod-logs", Destination: &o.PodLogs,
				Usage: "the `DIR` of the logs (default: the agent's, else " + logs.DefaultDir + ")"},
		},
		Action: func(c *cli.Context) error {
			if err := logsOptions(&o, c); err != nil {
				return err
			}
			o.Color = !c.Bool("no-color") && print.Colored(c.App.Writer, os.Getenv)
			o.Notes = c.App.ErrWriter
			return logsEnd(c.Context, logs.Print(c.Context, c.App.Writer, o))
		},
	}
}

// logsOptions copies the flags and arguments into the options.
func logsOptions(o *logs.Options, c *cli.Context) error {
	o.Containers = c.StringSlice("container")
	if err := (client.Choice{Selector: o.Selector}).Check(); err != nil {
		return command.UsageError("%v", err)
	}
	switch n := c.NArg(); {
	case n == 0 && o.Selector == "" && !o.All:
		return command.UsageError("logs of what? Name a pod, as in `monopod logs web`, or select pods by labels with -l, or all with -A")
	case n > 0 && o.Selector != "":
		return command.UsageError("name a pod or select pods by labels, not both: %q and -l %s", c.Args().First(), o.Selector)
	case n > 2:
		return command.UsageError("logs takes a pod and a container, got %q too; choose several containers with -c",
			c.Args().Get(2))
	case n == 2 && (len(o.Containers) > 0 || o.AllContainers):
		return command.UsageError("name containers once: behind the pod, or with -c or --all-containers")
	case n == 2:
		o.Containers = c.Args().Slice()[1:]
	}
	if n := c.NArg(); n > 0 {
		o.Pod = c.Args().First()
	}
	if len(o.Containers) > 0 && o.AllContainers {
		return command.UsageError("-c and --all-containers exclude each other")
	}
	since, sinceTime, tail, prefix := c.Duration("since"), c.String("since-time"), c.Int64("tail"), c.Bool("prefix")
	switch {
	case c.IsSet("since") && sinceTime != "":
		return command.UsageError("--since and --since-time exclude each other")
	case c.IsSet("since") && since <= 0:
		return command.UsageError("--since %s: give a time that is over, such as 5m", since)
	case since > 0:
		o.Since = time.Now().Add(-since)
	case sinceTime != "":
		var err error
		if o.Since, err = time.Parse(time.RFC3339, sinceTime); err != nil {
			return command.UsageError("--since-time %q: write it as in 2026-05-04T12:00:00Z", sinceTime)
		}
	}
	if tail < -1 {
		return command.UsageError("--tail %d: give a number of lines, or -1 for all", tail)
	}
	if tail >= 0 {
		o.Tail = &tail
	}
	if c.IsSet("prefix") {
		o.Prefix = &prefix
	}
	return nil
}

// logsEnd turns the result of printing into an exit code.
func logsEnd(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && strings.HasPrefix(context.Cause(ctx).Error(), syscall.SIGTERM.String()):
		return cli.Exit("", 128+int(syscall.SIGTERM))
	case ctx.Err() != nil:
		return cli.Exit("", 128+int(syscall.SIGINT))
	case logs.IsUsage(err):
		return command.UsageError("%v", err)
	}
	return err
}
