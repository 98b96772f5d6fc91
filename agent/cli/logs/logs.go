// Package logs prints the logs of containers in the order of time.
package logs

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

	"monopod/agent/cli/client"
	"monopod/agent/podlog"
	"monopod/agent/print"
)

// Options is which logs are shown and how.
type Options struct {
	client.Source
	PodLogs       string   // the folder of the logs; "": the agent's, else DefaultPodLogs
	Pod           string   // as for FindContainer; "": those that Selector matches, or All
	Namespace     string   // "" is all
	Selector      string   // of labels
	All           bool     // without a Selector all pods
	Containers    []string // by name; none: the default one of each pod
	AllContainers bool

	Follow     bool
	Previous   bool
	Timestamps bool
	Since      time.Time
	Tail       *int64 // of each container; nil: all
	Prefix     *bool  // before each line, its container; nil: if there are several
	Color      bool
	Notes      io.Writer // messages that are not logs

	every time.Duration // instead of overEvery
}

// DefaultDir is the default folder of logs.
const DefaultDir = "/var/log/pods"

// errUsage is the cause of errors that no other state of the pods would cure.
var errUsage = errors.New("usage")

// IsUsage distinguishes an invalid command from one that does not succeed.
func IsUsage(err error) bool { return errors.Is(err, errUsage) }

// container is a container whose log is shown.
type container struct {
	pod  *v1.Pod // its first pod
	name string
	dir  string
	read podlog.Options
	end  *end // nil: not followed
}

// Print prints the logs of containers from their files, those of several in the order of time as
// far as they exist, then as lines are written. Following continues over restarts, and with the
// pod that replaces one of that name, until each container has ended and is not restarted, or its
// pod is gone. Without following, a container without a log is an error, but a note if others have
// one. Its errors are one sentence.
func Print(ctx context.Context, out io.Writer, o Options) error {
	known, err := o.Source.Pods(ctx)
	if err != nil {
		return err
	}
	if !known.Seen.IsZero() {
		fmt.Fprintln(o.Notes, "monopod: "+known.DownWords(o.Socket, time.Now()))
	}
	pods, err := o.choose(known.Pods)
	if err != nil {
		return err
	}
	o.PodLogs = o.podLogs(ctx, known)
	var all []*container
	for _, p := range pods {
		names, err := o.containersOf(p, len(pods) > 1)
		if err != nil {
			return err
		}
		for _, name := range names {
			all = append(all, &container{pod: p, name: name, dir: podlog.Dir(o.PodLogs, p, name)})
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

// choose returns the chosen pods, and splits a container's name off the pod's.
func (o *Options) choose(all []v1.Pod) ([]*v1.Pod, error) {
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
	if len(chosen) == 0 && o.Selector == "" {
		return nil, &client.NameError{Text: "there are no pods", Cause: client.ErrNoPod}
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

// containersOf returns the containers of a pod whose logs are shown. Of several pods, some may
// lack one.
func (o *Options) containersOf(p *v1.Pod, several bool) (names []string, err error) {
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
func (o *Options) podLogs(ctx context.Context, k *client.Known) string {
	if o.PodLogs != "" || !k.Seen.IsZero() {
		return cmp.Or(o.PodLogs, DefaultDir)
	}
	var c struct {
		Settings struct {
			PodLogsDir string `json:"podLogsDir"`
		} `json:"kubeletconfig"`
	}
	if err := client.GetJSON(ctx, o.Socket, "/configz", &c); err != nil {
		return DefaultDir
	}
	return cmp.Or(c.Settings.PodLogsDir, DefaultDir)
}

// prepare determines what to read of each container, and returns the containers with something to
// read or to wait for.
func (o *Options) prepare(all []*container) (readable []*container, err error) {
	for _, c := range all {
		c.read = podlog.Options{Since: o.Since, Tail: o.Tail, Follow: o.Follow && !o.Previous}
		status := podlog.StatusOf(c.pod, c.name)
		attempt, failed := podlog.AttemptOf(c.dir, status, o.Previous)
		subject := fmt.Sprintf("container %s of pod %s/%s", c.name, c.pod.Namespace, print.ShortName(c.pod))
		there, _ := podlog.Attempts(c.dir)
		lacks := ""
		if failed == nil && !slices.Contains(there, attempt) { // so only of one that runs
			lacks = fmt.Sprintf("%s runs and has no log in %s: it was removed, or the agent's folder of logs is another: see --pod-logs", subject, c.dir)
		}
		switch {
		case lacks != "" && !c.read.Follow:
			failed = &client.NameError{Text: lacks, Cause: fs.ErrNotExist}
		case lacks != "":
			fmt.Fprintf(o.Notes, "monopod: %s; waiting for one\n", lacks)
		case failed == nil && !c.read.Follow:
			c.read.Which, c.read.Attempt = podlog.Only, attempt
		case failed == nil:
		case errors.Is(failed, podlog.ErrNoPrevious):
			failed = &client.NameError{Text: subject + " has no previous log: it has not been restarted, or that log was removed", Cause: fs.ErrNotExist}
		case over(c.pod, c.name):
			failed = &client.NameError{Text: fmt.Sprintf("%s has ended and has no log in %s", subject, c.dir), Cause: fs.ErrNotExist}
		case c.read.Follow:
			fmt.Fprintf(o.Notes, "monopod: %s is waiting to start: %s\n", subject, print.OneLine(podlog.Waits(status)))
			c.read.Which, failed = podlog.All, nil
		default:
			failed = &client.NameError{Text: fmt.Sprintf("%s is waiting to start: %s", subject, print.OneLine(podlog.Waits(status))), Cause: fs.ErrNotExist}
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
