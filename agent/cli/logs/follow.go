package logs

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/podlog"
	"monopod/manifests/defaults"
)

// overEvery is how often an agent is asked whether the followed containers have
// ended.
const overEvery = 2 * time.Second

// over reports whether a container writes no more, and never will, as far as
// its pod's status says.
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

// policyOf returns the restart policy that counts for a container. One that has
// rules of its own is taken to be restarted; an init container that ended well
// is not, unless it is a sidecar.
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

// untilOver closes ended for each container when it is over or its pod is gone,
// and returns when all are. While no agent answers, nothing is known to end.
func (o *Options) untilOver(ctx context.Context, all []*container, ended map[*container]chan struct{}) {
	tick := time.NewTicker(overEvery)
	defer tick.Stop()
	now := func(c *container) *v1.Pod { return c.pod }
	for {
		for _, c := range all {
			if ch := ended[c]; ch != nil {
				if p := now(c); p == nil || p.UID != c.pod.UID || over(p, c.name) {
					close(ch)
					delete(ended, c)
				}
			}
		}
		if len(ended) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var list v1.PodList
		if client.GetJSON(ctx, o.Socket, "/pods", &list) != nil {
			continue
		}
		pods := map[string]*v1.Pod{}
		for k := range list.Items {
			pods[list.Items[k].Namespace+"/"+list.Items[k].Name] = &list.Items[k]
		}
		now = func(c *container) *v1.Pod { return pods[c.pod.Namespace+"/"+c.pod.Name] }
	}
}
