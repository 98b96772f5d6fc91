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

	"monopod/agent/print"
	"monopod/agent/shutdown"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Request is a request of the owner, and its pods: Stop, Start, Hold, Release, Restart, Forget and
// Rollback send it to the agent. If no agent runs the error is an ErrDown.
type Request struct {
	Socket  string
	Choice  Choice     // of Restart the names are POD or POD/CONTAINER; of Forget also of objects; of Rollback it is one
	Node    bool       // the whole node is held or released
	Query   url.Values // further parameters for the agent
	NoWait  bool
	Timeout time.Duration // of the wait; 0: none
	Out     io.Writer
	Err     io.Writer // what blocks the request, and what a long wait is for; nil: not printed
}

// sendTimeout is longer than the agent takes to answer that it cannot.
const sendTimeout = 25 * time.Second

// pods returns the agent's pods. result is added to the error if none runs, such as ", and nothing
// is stopped".
func (o Request) pods(ctx context.Context, result string) ([]v1.Pod, error) {
	var list v1.PodList
	err := GetJSON(ctx, o.Socket, "/pods", &list)
	if notRunning(err) {
		return nil, fmt.Errorf("%w%s: %w", ErrDown, result, err)
	}
	return list.Items, err
}

// verb is a request that only names pods, or the node.
type verb struct {
	path    string                         // such as stop
	done    string                         // the pod's state then, such as stopped
	until   func(before, now *v1.Pod) bool // whether a pod has reached it; nil: as soon as it is recorded
	byGoing bool                           // a pod that is gone has reached it
}

// Stop stops pods in the order of a shutdown, and waits until nothing of them runs. Those that are
// being removed stop by themselves. With NoWait all stop at once.
func Stop(ctx context.Context, o Request) error {
	return o.do(ctx, verb{path: "stop", done: "stopped", byGoing: true, until: func(_, now *v1.Pod) bool {
		return now.Status.Reason == status.ReasonStopped && now.Status.Phase == v1.PodPending
	}})
}

// waves returns the pods in the order in which they stop.
func waves(pods []v1.Pod) (all [][]v1.Pod) {
	var stops []shutdown.Pod
	of := map[manifests.Key]v1.Pod{}
	short := map[manifests.Key]manifests.Key{} // pods by the names in manifests
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
func Start(ctx context.Context, o Request) error {
	return o.do(ctx, verb{path: "start", done: "started", until: hasStarted})
}

// hasStarted reports whether each container of a pod runs, or has ended since. Of a pod that was
// stopped, containers from before do not count: its phase is Running as soon as it is to run.
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
func Hold(ctx context.Context, o Request) error {
	return o.do(ctx, verb{path: "hold", done: "held"})
}

// Release ends holds.
func Release(ctx context.Context, o Request) error {
	return o.do(ctx, verb{path: "release", done: "released"})
}

// do sends a request that only names pods, one pod after the other.
func (o Request) do(ctx context.Context, v verb) error {
	ctx, cancel := bounded(ctx, o.Timeout)
	defer cancel()
	all, err := o.pods(ctx, ", and nothing is "+v.done)
	if err != nil {
		return err
	}
	if o.Node {
		return o.doOfNode(ctx, v)
	}
	pods, err := o.Choice.Of(all)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		_, err := fmt.Fprintln(o.Out, cmp.Or(o.Choice.None(), "There are no pods."))
		return err
	}
	steps := [][]v1.Pod{pods}
	if v.path == "stop" && !o.NoWait {
		steps = waves(pods)
	}
	here, err := newPresence(ctx, o.Socket)
	if err != nil {
		return err
	}
	var refused []error
	for _, together := range steps {
		taken, not := o.send(ctx, v.path, together)
		refused = append(refused, not...)
		if err := o.finish(ctx, v, taken, here); err != nil || ctx.Err() != nil {
			return errors.Join(append(refused, err)...)
		}
	}
	return errors.Join(refused...)
}

// doOfNode sends the request for the node.
func (o Request) doOfNode(ctx context.Context, v verb) error {
	var node v1.Node
	unknown := GetJSON(ctx, o.Socket, "/node", &node) // an agent that starts does not know it yet
	if _, err := post(ctx, sendTimeout, o.Socket, o.path(v.path)); err != nil {
		return err
	}
	former := ""
	if unknown == nil {
		former = v.replaces(node.Annotations)
	}
	_, err := fmt.Fprintf(o.Out, "the node is %s%s\n", v.done, former)
	return err
}

// send sends the request for several pods. It returns the pods for which the agent takes it, and
// why the agent refuses it for the others.
func (o Request) send(ctx context.Context, path string, pods []v1.Pod) (taken []v1.Pod, refused []error) {
	for _, p := range pods {
		_, err := post(ctx, sendTimeout, o.Socket, o.path(path+"/"+p.Namespace+"/"+p.Name))
		if leaves := path == "stop" && p.DeletionTimestamp != nil; err != nil && !leaves { // such a pod stops by itself
			refused = append(refused, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		taken = append(taken, p)
	}
	return taken, refused
}

// finish waits until all of these pods have reached the state, and prints that.
func (o Request) finish(ctx context.Context, v verb, pods []v1.Pod, here *presence) error {
	for k := range pods {
		p := &pods[k]
		if v.until != nil && !o.NoWait {
			if err := o.goal(p, v).await(ctx, p, here, o.Err); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(o.Out, "%s is %s%s\n", subjectOf(p), o.result(v), v.replaces(p.Annotations)); err != nil {
			return err
		}
	}
	return nil
}

// replaces returns which hold, of those in these annotations, a new one replaces.
func (v verb) replaces(annotations map[string]string) string {
	former := annotations[status.AnnHeld]
	if v.path != "hold" || former == "" {
		return ""
	}
	return ", in place of: " + print.OneLine(former)
}

// result returns the state of a pod once the agent has recorded the request, or once the pod has
// reached it.
func (o Request) result(v verb) string {
	if v.until != nil && o.NoWait {
		return "being " + v.done
	}
	return v.done
}

func subjectOf(p *v1.Pod) string { return "pod " + p.Namespace + "/" + print.ShortName(p) }

func (o Request) path(path string) string {
	if len(o.Query) > 0 {
		path += "?" + o.Query.Encode()
	}
	return "/" + path
}

// goal is that a pod has reached the state, or has ended.
func (o Request) goal(p *v1.Pod, v verb) goal {
	subject := subjectOf(p)
	g := goal{subject: subject, late: "is not " + v.done, timeout: o.Timeout,
		missing: func(now *v1.Pod) (string, error) {
			if v.until(p, now) || hasEnded(now) {
				return "", nil
			}
			words := strings.Join(print.PodWords([]v1.Pod{*now}, time.Now()), "; ")
			return cmp.Or(words, print.Summarize(now, time.Now()).Word), nil
		},
		waiting: "waiting until " + subject + " is " + v.done}
	if !v.byGoing {
		g.gone = fmt.Errorf("%s is not %s and will not be: it was removed meanwhile", subject, v.done)
	}
	return g
}

// hasEnded reports whether a pod has ended. One that failed before it was made may still start.
func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed && len(p.Status.Conditions) > 0
}
