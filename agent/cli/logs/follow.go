package logs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/podlog"
	"monopod/agent/print"
	"monopod/manifests/defaults"
)

// overEvery is the interval of requests to the agent whether the followed containers have ended.
const overEvery = 2 * time.Second

// over reports whether a container writes no more, and never will, by its pod's status.
func over(p *v1.Pod, name string) bool {
	if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return true
	}
	c := podlog.StatusOf(p, name)
	if c == nil || c.State.Terminated == nil {
		return false
	}
	policy := policyOf(p, name)
	return policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure && c.State.Terminated.ExitCode == 0
}

// policyOf returns the restart policy of a container. One that has rules of its own is assumed to
// be restarted; an init container that ended well is not, unless it is a sidecar.
func policyOf(p *v1.Pod, name string) v1.RestartPolicy {
	of := func(c *v1.Container) v1.RestartPolicy {
		if len(c.RestartPolicyRules) > 0 {
			return v1.RestartPolicyAlways
		}
		return cmp.Or(defaults.RestartPolicyOf(p, c), v1.RestartPolicyAlways)
	}
	for k := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[k]
		if c.Name == name && !defaults.IsSidecar(c) && of(c) == v1.RestartPolicyAlways {
			return v1.RestartPolicyOnFailure
		}
		if c.Name == name {
			return of(c)
		}
	}
	for k := range p.Spec.Containers {
		if c := &p.Spec.Containers[k]; c.Name == name {
			return of(c)
		}
	}
	return v1.RestartPolicyNever
}

// end is how long one pod's container is followed. Once over is closed no further line comes, and
// the other fields are those of a successor, if there is one.
type end struct {
	over      chan struct{}
	successor *v1.Pod
	next      *end
}

// following detects when followed containers end. It belongs to its goroutine.
type following struct {
	*Options
	all     []*container
	pods    map[*container]*v1.Pod // whose log is followed now
	ends    map[*container]*end    // of the containers that have not ended
	printed map[string]bool
}

func newFollowing(o *Options, all []*container) *following {
	f := &following{o, all, map[*container]*v1.Pod{}, map[*container]*end{}, map[string]bool{}}
	for _, c := range all {
		f.pods[c], f.ends[c] = c.pod, c.end
	}
	return f
}

// run checks the pods until no container is restarted any more, or its pod is gone. While no agent
// answers, or one that has just started does not report all pods yet, no end is known.
func (f *following) run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(f.every, overEvery))
	defer tick.Stop()
	now := func(c *container) *v1.Pod { return c.pod }
	for {
		for _, c := range f.all {
			if f.ends[c] != nil {
				f.look(c, now(c))
			}
		}
		if len(f.ends) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		all, complete, err := client.AllPods(ctx, f.Socket)
		if err != nil || !complete {
			continue
		}
		pods := map[string]*v1.Pod{}
		for k := range all {
			pods[all[k].Namespace+"/"+all[k].Name] = &all[k]
		}
		now = func(c *container) *v1.Pod { return pods[c.pod.Namespace+"/"+c.pod.Name] }
	}
}

// look ends the follow of what is over, except of a pod that is being removed: another follows, or
// it is gone.
func (f *following) look(c *container, p *v1.Pod) {
	e, subject := f.ends[c], fmt.Sprintf("pod %s/%s", c.pod.Namespace, print.ShortName(c.pod))
	switch {
	case p == nil:
		f.print(subject + " was removed")
	case p.UID != f.pods[c].UID:
		if _, err := client.ContainerOf(p, c.name); err != nil {
			f.print(fmt.Sprintf("%s was replaced by one without a container %s", subject, c.name))
			break
		}
		f.print(fmt.Sprintf("%s was replaced; these are the logs of the new one, uid %s", subject, p.UID))
		e.successor, e.next = p, &end{over: make(chan struct{})}
	case p.DeletionTimestamp != nil || !over(p, c.name):
		return
	}
	delete(f.ends, c)
	if e.next != nil {
		f.pods[c], f.ends[c] = p, e.next
	}
	close(e.over)
}

func (f *following) print(text string) {
	if !f.printed[text] {
		f.printed[text] = true
		fmt.Fprintln(f.Notes, "monopod: "+text)
	}
}
