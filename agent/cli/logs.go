package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
	"monopod/agent/podlog"
)

// LogsOptions says which logs are shown and how.
type LogsOptions struct {
	client.Source
	PodLogs       string   // the folder of the logs; "": the agent's, else DefaultPodLogs
	Pod           string   // as for FindContainer; "": those that Selector takes
	Namespace     string   // "" is all
	Selector      string   // of labels
	Containers    []string // by name; none: the default one of each pod
	AllContainers bool

	Follow     bool
	Previous   bool
	Timestamps bool
	Since      time.Time
	Tail       *int64 // of each container; nil: all
	Prefix     *bool  // before each line, whose it is; nil: if there are several
	Color      bool
	Notes      io.Writer // messages that are not logs
}

// DefaultPodLogs is where logs are unless the agent was told otherwise.
const DefaultPodLogs = "/var/log/pods"

// errUsage is what errors are that no other state of the pods would cure.
var errUsage = errors.New("usage")

// IsUsage tells a command that cannot be meant from one that does not succeed.
func IsUsage(err error) bool { return errors.Is(err, errUsage) }

// container is a container whose log is shown.
type container struct {
	pod  *v1.Pod
	name string
	dir  string
	read podlog.Options
}

// Logs prints the logs of containers from their files, those of several in the
// order of time as far as they are there, then as lines come. Following goes on
// over restarts, until each container has ended for good or its pod is gone.
// Without following, a container that has no log is an error, and is a note
// where others have one. Its errors are one sentence.
func Logs(ctx context.Context, out io.Writer, o LogsOptions) error {
	known, err := o.Source.Pods(ctx)
	if err != nil {
		return err
	}
	if !known.Seen.IsZero() {
		fmt.Fprintln(o.Notes, "monopod: "+client.DownWords(o.Socket, known.Seen, time.Now()))
	}
	pods, err := o.choose(known.Pods)
	if err != nil {
		return err
	}
	podLogs := o.podLogs(ctx, known)
	var all []*container
	for _, p := range pods {
		names, err := o.containersOf(p, len(pods) > 1)
		if err != nil {
			return err
		}
		for _, name := range names {
			all = append(all, &container{pod: p, name: name, dir: podlog.Dir(podLogs, p, name)})
		}
	}
	if len(all) == 0 {
		return &client.NameError{Text: fmt.Sprintf("no chosen pod has a container %s", strings.Join(o.Containers, " or "))}
	}
	readable, err := o.prepare(all)
	if err != nil {
		return err
	}
	if o.Prefix == nil {
		several := len(all) > 1
		o.Prefix = &several
	}
	return o.show(ctx, out, readable)
}

// choose returns the pods that are meant, and takes a container's name off the
// pod's.
func (o *LogsOptions) choose(all []v1.Pod) ([]*v1.Pod, error) {
	if o.Pod != "" {
		p, name, err := client.FindContainer(all, o.Pod, o.Namespace)
		if err != nil {
			return nil, err
		}
		if name != "" && (len(o.Containers) > 0 || o.AllContainers) {
			return nil, &client.NameError{Text: fmt.Sprintf("%q names container %s: name containers once", o.Pod, name), Cause: errUsage}
		}
		if name != "" {
			o.Containers = []string{name}
		}
		return []*v1.Pod{p}, nil
	}
	chosen, err := client.Choice{Namespace: o.Namespace, Selector: o.Selector}.Of(all)
	if err != nil {
		return nil, &client.NameError{Text: err.Error(), Cause: errUsage}
	}
	if len(chosen) == 0 {
		return nil, &client.NameError{Text: fmt.Sprintf("no pod has the labels %s; `monopod ps` lists the pods", o.Selector), Cause: client.ErrNoPod}
	}
	pods := make([]*v1.Pod, len(chosen))
	for k := range chosen {
		pods[k] = &chosen[k]
	}
	return pods, nil
}

// containersOf returns those of a pod's containers whose logs are shown. Of
// several pods, some may lack one.
func (o *LogsOptions) containersOf(p *v1.Pod, several bool) (names []string, err error) {
	var all []string
	for _, c := range p.Spec.InitContainers {
		all = append(all, c.Name)
	}
	for _, c := range p.Spec.Containers {
		all = append(all, c.Name)
	}
	if o.AllContainers {
		return all, nil
	}
	for _, name := range o.Containers {
		if several && !slices.Contains(all, name) {
			continue
		}
		if _, err := client.ContainerOf(p, name); err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(o.Containers) > 0 {
		return names, nil
	}
	name, err := client.ContainerOf(p, "")
	if err == nil && len(p.Spec.Containers) > 1 && p.Annotations[client.DefaultContainer] != name {
		fmt.Fprintf(o.Notes, "monopod: this is container %s of pod %s/%s, which has %s; choose with -c or --all-containers\n",
			name, p.Namespace, print.ShortName(p), strings.Join(all, ", "))
	}
	return []string{name}, err
}

// podLogs returns the folder of the logs.
func (o *LogsOptions) podLogs(ctx context.Context, k *client.Known) string {
	if o.PodLogs != "" || !k.Seen.IsZero() {
		return cmp.Or(o.PodLogs, DefaultPodLogs)
	}
	var c struct {
		Settings struct {
			PodLogsDir string `json:"podLogsDir"`
		} `json:"kubeletconfig"`
	}
	if err := client.GetJSON(ctx, o.Socket, "/configz", &c); err != nil {
		return DefaultPodLogs
	}
	return cmp.Or(c.Settings.PodLogsDir, DefaultPodLogs)
}

// prepare finds out what to read of each container, and returns the containers
// with something to read or to wait for.
func (o *LogsOptions) prepare(all []*container) (readable []*container, err error) {
	for _, c := range all {
		c.read = podlog.Options{Since: o.Since, Tail: o.Tail, Follow: o.Follow && !o.Previous}
		status := podlog.StatusOf(c.pod, c.name)
		attempt, failed := podlog.AttemptOf(c.dir, status, o.Previous)
		subject := fmt.Sprintf("container %s of pod %s/%s", c.name, c.pod.Namespace, print.ShortName(c.pod))
		switch {
		case failed == nil && !c.read.Follow:
			c.read.Which, c.read.Attempt = podlog.Only, attempt
		case failed == nil:
		case errors.Is(failed, podlog.ErrNoPrevious):
			failed = &client.NameError{Text: subject + " has no previous log: it has not been restarted, or that log was removed", Cause: fs.ErrNotExist}
		case over(c.pod, c.name):
			failed = &client.NameError{Text: fmt.Sprintf("%s has ended and has no log in %s", subject, c.dir), Cause: fs.ErrNotExist}
		case c.read.Follow:
			fmt.Fprintf(o.Notes, "monopod: %s is waiting to start: %s\n", subject, podlog.Waits(status))
			failed = nil
		default:
			failed = &client.NameError{Text: fmt.Sprintf("%s is waiting to start: %s", subject, podlog.Waits(status)), Cause: fs.ErrNotExist}
		}
		switch {
		case failed == nil:
			readable = append(readable, c)
		case len(all) == 1:
			return nil, failed
		default:
			fmt.Fprintf(o.Notes, "monopod: %v\n", failed)
		}
	}
	if len(readable) == 0 {
		return nil, &client.NameError{Text: "none of these containers has a log to show", Cause: fs.ErrNotExist}
	}
	return readable, nil
}

// logsFlags are those of logs that its options do not have as they are given.
type logsFlags struct {
	since           time.Duration
	sinceTime       string
	tail            int64
	prefix, noColor bool
}

func logsCommand() *command {
	var o LogsOptions
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
			selectorFlag(f, &o.Selector)
			namespaceFlag(f, &o.Namespace)
			f.BoolVar(&g.prefix, "prefix", false, "put pod and container before each line (default: if there are several)")
			f.BoolVar(&g.noColor, "no-color", false, "no colours on a terminal; so does the variable NO_COLOR")
			sourceFlags(f, &o.Source)
			f.StringVar(&o.PodLogs, "pod-logs", "", "the `DIR` of the logs (default: the agent's, else "+DefaultPodLogs+")")
		},
		run: func(ctx context.Context, c *Call) error {
			if err := g.into(&o, c); err != nil {
				return err
			}
			o.Color = !g.noColor && Colored(c.Out, os.Getenv)
			o.Notes = c.Err
			return logsEnd(ctx, Logs(ctx, c.Out, o))
		},
	}
}

// into puts what was given into the options.
func (g *logsFlags) into(o *LogsOptions, c *Call) error {
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
	case IsUsage(err):
		return exit(exitUsage, "%v", err)
	}
	return err
}
