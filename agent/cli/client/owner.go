package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/print"
	"monopod/agent/shutdown"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// OwnerOptions says which pods are stopped, started, held or released.
type OwnerOptions struct {
	Socket  string
	Choice  Choice
	Node    bool // the whole node is held or released
	Query   url.Values
	NoWait  bool
	Timeout time.Duration // of the wait; 0: none
	Out     io.Writer
	Err     io.Writer // what a wait that lasts is for; nil: that is not said
}

// wish is what is asked for of pods.
type wish struct {
	path, done string
	until      func(before, now *v1.Pod) bool // whether a pod has come to it; nil: it has as soon as it is recorded
	byGoing    bool                           // a pod that is gone has come to it
}

// Stop stops pods in the order in which a shutdown does, and waits until nothing of them
// runs. Those that are being removed stop by themselves. With NoWait all stop at once.
func Stop(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, wish{path: "stop", done: "stopped", byGoing: true, until: func(_, now *v1.Pod) bool {
		return now.Status.Reason == status.ReasonStopped && now.Status.Phase == v1.PodPending
	}})
}

// waves returns the pods in the order in which they stop.
func waves(pods []v1.Pod) (all [][]v1.Pod) {
	var stops []shutdown.Pod
	of := map[manifests.Key]v1.Pod{}
	short := map[manifests.Key]manifests.Key{} // pods by the names that manifests give
	for k := range pods {
		p := &pods[k]
		key := manifests.KeyOf(p)
		of[key] = *p
		short[manifests.Key{Namespace: p.Namespace, Name: print.ShortName(p)}] = key
	}
	for k := range pods {
		p := &pods[k]
		one := shutdown.Pod{Key: manifests.KeyOf(p), Priority: shutdown.PriorityOf(p)}
		for _, after := range annotations.OrderOf(p).After {
			one.After = append(one.After, cmp.Or(short[after], after))
		}
		stops = append(stops, one)
	}
	for _, wave := range shutdown.Waves(stops) {
		var together []v1.Pod
		for _, key := range wave {
			together = append(together, of[key])
		}
		all = append(all, together)
	}
	return all
}

// Start starts stopped pods and waits until they run.
func Start(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, wish{path: "start", done: "started", until: hasStarted})
}

// hasStarted reports whether each container of a pod runs, or has ended since. Of one that was
// stopped none counts that was there before: its phase is Running as soon as it is to run.
func hasStarted(before, now *v1.Pod) bool {
	if now.Status.Reason == status.ReasonStopped || now.Status.Phase == v1.PodPending || status.WasRefused(&now.Status) {
		return false
	}
	replaces := map[string]string{}
	for _, s := range now.Status.ContainerStatuses {
		replaces[s.Name] = ""
		if was, there := print.StatusOf(before.Status.ContainerStatuses, s.Name); there && before.Status.Reason == status.ReasonStopped {
			_, replaces[s.Name], _ = strings.Cut(was.ContainerID, "://")
		}
	}
	return stillToCome(now, replaces) == ""
}

// Hold holds pods or the node.
func Hold(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, wish{path: "hold", done: "held"})
}

// Release ends holds.
func Release(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, wish{path: "release", done: "released"})
}

// do asks for it, of one pod after the other.
func (o OwnerOptions) do(ctx context.Context, w wish) error {
	var list v1.PodList
	if err := GetJSON(ctx, o.Socket, "/pods", &list); notRunning(err) {
		return fmt.Errorf("%w, and nothing is %s: %w", ErrDown, w.done, err)
	} else if err != nil {
		return err
	}
	if o.Node {
		return o.doOfNode(ctx, w)
	}
	pods, err := o.Choice.Of(list.Items)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, o.Timeout)
	defer cancel()
	if len(pods) == 0 {
		_, err := fmt.Fprintln(o.Out, cmp.Or(o.Choice.None(), "There are no pods."))
		return err
	}
	steps := [][]v1.Pod{pods}
	if w.path == "stop" && !o.NoWait {
		steps = waves(pods)
	}
	here, err := newPresence(ctx, o.Socket)
	if err != nil {
		return err
	}
	var refused []error
	for _, together := range steps {
		asked, not := o.ask(ctx, w.path, together)
		refused = append(refused, not...)
		if err := o.finish(ctx, w, asked, here); err != nil {
			return errors.Join(append(refused, err)...)
		}
	}
	return errors.Join(refused...)
}

// doOfNode asks for it of the node.
func (o OwnerOptions) doOfNode(ctx context.Context, w wish) error {
	var node v1.Node
	unknown := GetJSON(ctx, o.Socket, "/node", &node) // an agent that starts does not know it yet
	if _, err := post(ctx, askRestartTimeout, o.Socket, o.path(w.path)); err != nil {
		return err
	}
	former := ""
	if unknown == nil {
		former = w.replaces(node.Annotations)
	}
	_, err := fmt.Fprintf(o.Out, "the node is %s%s\n", w.done, former)
	return err
}

// ask asks for it of pods together. It returns those of which it is going to be so, and
// why the agent refuses it of the others.
func (o OwnerOptions) ask(ctx context.Context, path string, pods []v1.Pod) (asked []v1.Pod, refused []error) {
	for _, p := range pods {
		_, err := post(ctx, askRestartTimeout, o.Socket, o.path(path+"/"+p.Namespace+"/"+p.Name))
		if leaves := path == "stop" && p.DeletionTimestamp != nil; err != nil && !leaves { // that stops by itself
			refused = append(refused, err)
			continue
		}
		asked = append(asked, p)
	}
	return asked, refused
}

// finish waits until all of these pods have come to it, and says so.
func (o OwnerOptions) finish(ctx context.Context, w wish, pods []v1.Pod, here *presence) error {
	for k := range pods {
		p := &pods[k]
		if w.until != nil && !o.NoWait {
			if err := o.goal(p, w).await(ctx, p, here, o.Err); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(o.Out, "%s is %s%s\n", subjectOf(p), o.said(w), w.replaces(p.Annotations)); err != nil {
			return err
		}
	}
	return nil
}

// replaces says which hold, of those whose annotations these are, a new one takes the place of.
func (w wish) replaces(annotations map[string]string) string {
	former := annotations[status.AnnHeld]
	if w.path != "hold" || former == "" {
		return ""
	}
	return ", in place of: " + print.OneLine(former)
}

// said is what a pod is once the agent has recorded it, or once it has come to it.
func (o OwnerOptions) said(w wish) string {
	if w.until != nil && o.NoWait {
		return "being " + w.done
	}
	return w.done
}

func subjectOf(p *v1.Pod) string { return "pod " + p.Namespace + "/" + print.ShortName(p) }

func (o OwnerOptions) path(path string) string {
	if len(o.Query) > 0 {
		path += "?" + o.Query.Encode()
	}
	return "/" + path
}

// goal is that a pod has come to it, or has ended.
func (o OwnerOptions) goal(p *v1.Pod, w wish) goal {
	subject := subjectOf(p)
	g := goal{subject: subject, late: "is not " + w.done, timeout: o.Timeout,
		missing: func(now *v1.Pod) (string, error) {
			if w.until(p, now) || hasEnded(now) {
				return "", nil
			}
			words := strings.Join(print.PodWords([]v1.Pod{*now}, time.Now()), "; ")
			return cmp.Or(words, print.Summarize(now, time.Now()).Word), nil
		},
		waiting: "waiting until " + subject + " is " + w.done}
	if !w.byGoing {
		g.gone = fmt.Errorf("%s is not %s and will not be: it was removed meanwhile", subject, w.done)
	}
	return g
}

// hasEnded reports whether a pod has ended. One that failed before it was made may still start.
func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed && len(p.Status.Conditions) > 0
}
