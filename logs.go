package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	acli "monopod/agent/cli"
)

// logsFlags are those of logs that its options do not have as they are given.
type logsFlags struct {
	since           time.Duration
	sinceTime       string
	tail            int64
	prefix, noColor bool
}

func logsCommand() *command {
	var o acli.LogsOptions
	var g logsFlags
	return &command{
		name: "logs", args: "POD [CONTAINER] | -l SELECTOR", usage: "print the logs of containers",
		about: `
Without a container, it is the one that the annotation kubectl.kubernetes.io/default-container
names, else the first. The log is that of the container's last start, with all that was set
aside of it by rotation; --previous is that of the start before. Logs of several containers
come in the order of time.

With -f, lines are printed as they come, over rotations and restarts, until the container
has ended for good or its pod is gone. Logs are read from their files: this needs root, and
works while the agent does not run.

Exit codes: 0; 1: no such pod, container or log; 2: wrong flags; 130 and 143: ended by SIGINT
(Ctrl-C) and SIGTERM.`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Follow, "follow", "f", false, "go on with lines as they come")
			f.BoolVarP(&o.Previous, "previous", "p", false, "the log of the start before")
			f.Int64Var(&g.tail, "tail", -1, "only the last `N` lines of each container; -1 for all")
			f.DurationVar(&g.since, "since", 0, "only lines of the last `DURATION`, such as 90s, 5m or 2h")
			f.StringVar(&g.sinceTime, "since-time", "", "only lines since the `TIME`, such as 2026-05-04T12:00:00Z")
			f.BoolVar(&o.Timestamps, "timestamps", false, "put the time before each line")
			f.StringArrayVarP(&o.Containers, "container", "c", nil, "the `NAME` of a container; may be repeated")
			f.BoolVar(&o.AllContainers, "all-containers", false, "all containers of the pods, init containers included")
			f.StringVarP(&o.Selector, "selector", "l", "", "the pods with such `LABELS`, as in app=web,tier!=db")
			f.StringVarP(&o.Namespace, "namespace", "n", "", "the `NAMESPACE` to look in (default: all)")
			f.BoolVar(&g.prefix, "prefix", false, "put pod and container before each line (default: if there are several)")
			f.BoolVar(&g.noColor, "no-color", false, "no colours on a terminal; so does the variable NO_COLOR")
			socketFlag(f, &o.Socket)
			f.StringVar(&o.Root, "root", "/var/lib/monopod", "the `DIR` of the agent, for when it does not run")
			f.StringVar(&o.PodLogs, "pod-logs", "", "the `DIR` of the logs (default: the agent's, else "+acli.DefaultPodLogs+")")
		},
		run: func(ctx context.Context, c *call) error {
			if err := g.into(&o, c); err != nil {
				return err
			}
			o.Color = !g.noColor && acli.Colored(c.out, os.Getenv)
			o.Notes = c.err
			return logsEnd(ctx, acli.Logs(ctx, c.out, o))
		},
	}
}

// into puts what was given into the options.
func (g *logsFlags) into(o *acli.LogsOptions, c *call) error {
	switch n := len(c.args); {
	case n == 0 && o.Selector == "":
		return exit(exitUsage, "logs of what? Name a pod, as in `monopod logs web`, or select pods by labels with -l")
	case n > 0 && o.Selector != "":
		return exit(exitUsage, "name a pod or select pods by labels, not both: %q and -l %s", c.args[0], o.Selector)
	case n > 2:
		return exit(exitUsage, "logs takes a pod and a container, got %q too; choose several containers with -c", c.args[2])
	case n == 2 && (len(o.Containers) > 0 || o.AllContainers):
		return exit(exitUsage, "name containers once: behind the pod, or with -c or --all-containers")
	case n == 2:
		o.Containers = c.args[1:]
	}
	if n := len(c.args); n > 0 {
		o.Pod = c.args[0]
	}
	if len(o.Containers) > 0 && o.AllContainers {
		return exit(exitUsage, "-c and --all-containers exclude each other")
	}
	switch {
	case c.flags.Changed("since") && g.sinceTime != "":
		return exit(exitUsage, "--since and --since-time exclude each other")
	case c.flags.Changed("since") && g.since <= 0:
		return exit(exitUsage, "--since %s: give a time that is over, such as 5m", g.since)
	case g.since > 0:
		o.Since = time.Now().Add(-g.since)
	case g.sinceTime != "":
		var err error
		if o.Since, err = time.Parse(time.RFC3339, g.sinceTime); err != nil {
			return exit(exitUsage, "--since-time %q: write it as in 2026-05-04T12:00:00Z", g.sinceTime)
		}
	}
	if g.tail < -1 {
		return exit(exitUsage, "--tail %d: give a number of lines, or -1 for all", g.tail)
	}
	if g.tail >= 0 {
		o.Tail = &g.tail
	}
	if c.flags.Changed("prefix") {
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
		return exit(128+int(syscall.SIGTERM), "")
	case ctx.Err() != nil:
		return exit(128+int(syscall.SIGINT), "")
	case acli.IsUsage(err):
		return exit(exitUsage, "%v", err)
	}
	return err
}
