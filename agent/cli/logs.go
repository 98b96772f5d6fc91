package cli

import (
	"context"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"monopod/agent/cli/command"
	"monopod/agent/cli/logs"
	"monopod/agent/cli/print"
)

// logsFlags are those of logs that its options do not have as they are given.
type logsFlags struct {
	since           time.Duration
	sinceTime       string
	tail            int64
	prefix, noColor bool
}

func logsCommand() *command.Command {
	var o logs.Options
	var g logsFlags
	return &command.Command{
		Name: "logs", Args: "POD [CONTAINER] | -l SELECTOR", Usage: "print the logs of containers",
		About: `
Without a container, it is the one that the annotation kubectl.kubernetes.io/default-container
names, else the first. The log is that of the container's last start, with all that was set
aside of it by rotation; --previous is that of the start before. Logs of several containers
come in the order of time.

With -f, lines are printed as they come, over rotations and restarts, until the container
has ended for good or its pod is gone. Logs are read from their files: this needs root, and
works while the agent does not run.

Exit codes: 0; 1: no such pod, container or log; 2: wrong flags; 130 and 143: ended by SIGINT
(Ctrl-C) and SIGTERM.`,
		Flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Follow, "follow", "f", false, "go on with lines as they come")
			f.BoolVarP(&o.Previous, "previous", "p", false, "the log of the start before")
			f.Int64Var(&g.tail, "tail", -1, "only the last `N` lines of each container; -1 for all")
			f.DurationVar(&g.since, "since", 0, "only lines of the last `DURATION`, such as 90s, 5m or 2h")
			f.StringVar(&g.sinceTime, "since-time", "", "only lines since the `TIME`, such as 2026-05-04T12:00:00Z")
			f.BoolVar(&o.Timestamps, "timestamps", false, "put the time before each line")
			f.StringArrayVarP(&o.Containers, "container", "c", nil, "the `NAME` of a container; may be repeated")
			f.BoolVar(&o.AllContainers, "all-containers", false, "all containers of the pods, init containers included")
			command.SelectorFlag(f, &o.Selector)
			command.NamespaceFlag(f, &o.Namespace)
			f.BoolVar(&g.prefix, "prefix", false, "put pod and container before each line (default: if there are several)")
			f.BoolVar(&g.noColor, "no-color", false, "no colours on a terminal; so does the variable NO_COLOR")
			command.SourceFlags(f, &o.Source)
			f.StringVar(&o.PodLogs, "pod-logs", "", "the `DIR` of the logs (default: the agent's, else "+logs.DefaultDir+")")
		},
		Run: func(ctx context.Context, c *command.Call) error {
			if err := g.into(&o, c); err != nil {
				return err
			}
			o.Color = !g.noColor && print.Colored(c.Out, os.Getenv)
			o.Notes = c.Err
			return logsEnd(ctx, logs.Print(ctx, c.Out, o))
		},
	}
}

// into puts what was given into the options.
func (g *logsFlags) into(o *logs.Options, c *command.Call) error {
	switch n := len(c.Args); {
	case n == 0 && o.Selector == "":
		return command.UsageError("logs of what? Name a pod, as in `monopod logs web`, or select pods by labels with -l")
	case n > 0 && o.Selector != "":
		return command.UsageError("name a pod or select pods by labels, not both: %q and -l %s", c.Args[0], o.Selector)
	case n > 2:
		return command.UsageError("logs takes a pod and a container, got %q too; choose several containers with -c", c.Args[2])
	case n == 2 && (len(o.Containers) > 0 || o.AllContainers):
		return command.UsageError("name containers once: behind the pod, or with -c or --all-containers")
	case n == 2:
		o.Containers = c.Args[1:]
	}
	if n := len(c.Args); n > 0 {
		o.Pod = c.Args[0]
	}
	if len(o.Containers) > 0 && o.AllContainers {
		return command.UsageError("-c and --all-containers exclude each other")
	}
	switch {
	case c.Flags.Changed("since") && g.sinceTime != "":
		return command.UsageError("--since and --since-time exclude each other")
	case c.Flags.Changed("since") && g.since <= 0:
		return command.UsageError("--since %s: give a time that is over, such as 5m", g.since)
	case g.since > 0:
		o.Since = time.Now().Add(-g.since)
	case g.sinceTime != "":
		var err error
		if o.Since, err = time.Parse(time.RFC3339, g.sinceTime); err != nil {
			return command.UsageError("--since-time %q: write it as in 2026-05-04T12:00:00Z", g.sinceTime)
		}
	}
	if g.tail < -1 {
		return command.UsageError("--tail %d: give a number of lines, or -1 for all", g.tail)
	}
	if g.tail >= 0 {
		o.Tail = &g.tail
	}
	if c.Flags.Changed("prefix") {
		o.Prefix = &g.prefix
	}
	return nil
}

// logsEnd makes an exit code of how printing ended.
func logsEnd(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && strings.HasPrefix(context.Cause(ctx).Error(), syscall.SIGTERM.String()):
		return command.Exit(128+int(syscall.SIGTERM), "")
	case ctx.Err() != nil:
		return command.Exit(128+int(syscall.SIGINT), "")
	case logs.IsUsage(err):
		return command.UsageError("%v", err)
	}
	return err
}
