package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
)

// LogsOptions says which logs are shown and how.
type LogsOptions struct {
	Source
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
	Notes      io.Writer // what is to be said beside the logs
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
	known, err := o.Source.pods(ctx)
	if err != nil {
		return err
	}
	if !known.seen.IsZero() {
		fmt.Fprintln(o.Notes, "monopod: "+downWords(o.Socket, known.seen, time.Now()))
	}
	pods, err := o.choose(known.pods)
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
		return &nameError{text: fmt.Sprintf("no chosen pod has a container %s", strings.Join(o.Containers, " or "))}
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
		p, name, err := FindContainer(all, o.Pod, o.Namespace)
		if err != nil {
			return nil, err
		}
		if name != "" && (len(o.Containers) > 0 || o.AllContainers) {
			return nil, &nameError{fmt.Sprintf("%q names container %s: name containers once", o.Pod, name), errUsage}
		}
		if name != "" {
			o.Containers = []string{name}
		}
		return []*v1.Pod{p}, nil
	}
	chosen, err := Choice{Namespace: o.Namespace, Selector: o.Selector}.Of(all)
	if err != nil {
		return nil, &nameError{err.Error(), errUsage}
	}
	if len(chosen) == 0 {
		return nil, &nameError{fmt.Sprintf("no pod has the labels %s; `monopod ps` lists the pods", o.Selector), ErrNoPod}
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
		if _, err := ContainerOf(p, name); err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(o.Containers) > 0 {
		return names, nil
	}
	name, err := ContainerOf(p, "")
	if err == nil && len(p.Spec.Containers) > 1 && p.Annotations[defaultContainer] != name {
		fmt.Fprintf(o.Notes, "monopod: this is container %s of pod %s/%s, which has %s; choose with -c or --all-containers\n",
			name, p.Namespace, shortName(p), strings.Join(all, ", "))
	}
	return []string{name}, err
}

// podLogs returns the folder of the logs.
func (o *LogsOptions) podLogs(ctx context.Context, k *known) string {
	if o.PodLogs != "" || !k.seen.IsZero() {
		return cmp.Or(o.PodLogs, DefaultPodLogs)
	}
	var c struct {
		Settings struct {
			PodLogsDir string `json:"podLogsDir"`
		} `json:"kubeletconfig"`
	}
	if err := getJSON(ctx, o.Socket, "/configz", &c); err != nil {
		return DefaultPodLogs
	}
	return cmp.Or(c.Settings.PodLogsDir, DefaultPodLogs)
}

// prepare finds out what is read of each container, and returns those of which
// there is something to read or to wait for.
func (o *LogsOptions) prepare(all []*container) (readable []*container, err error) {
	for _, c := range all {
		c.read = podlog.Options{Since: o.Since, Tail: o.Tail, Follow: o.Follow && !o.Previous}
		status := podlog.StatusOf(c.pod, c.name)
		attempt, failed := podlog.AttemptOf(c.dir, status, o.Previous)
		who := fmt.Sprintf("container %s of pod %s/%s", c.name, c.pod.Namespace, shortName(c.pod))
		switch {
		case failed == nil && !c.read.Follow:
			c.read.Which, c.read.Attempt = podlog.Only, attempt
		case failed == nil:
		case errors.Is(failed, podlog.ErrNoPrevious):
			failed = &nameError{who + " has no previous log: it has not been restarted, or that log was removed", fs.ErrNotExist}
		case over(c.pod, c.name):
			failed = &nameError{fmt.Sprintf("%s has ended and has no log in %s", who, c.dir), fs.ErrNotExist}
		case c.read.Follow:
			fmt.Fprintf(o.Notes, "monopod: %s is waiting to start: %s\n", who, podlog.Waits(status))
			failed = nil
		default:
			failed = &nameError{fmt.Sprintf("%s is waiting to start: %s", who, podlog.Waits(status)), fs.ErrNotExist}
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
		return nil, &nameError{"none of these containers has a log to show", fs.ErrNotExist}
	}
	return readable, nil
}
