package status

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

// HideValues removes from a pod the values of its containers' variables, of the headers that their
// probes and hooks send, and kubectl's copy of the manifest, which has them again. Commands stay.
// It changes nothing that the pod shares with others.
func HideValues(p *v1.Pod) {
	p.Spec.InitContainers = withoutValues(p.Spec.InitContainers)
	p.Spec.Containers = withoutValues(p.Spec.Containers)
	if _, copied := p.Annotations[v1.LastAppliedConfigAnnotation]; copied {
		p.Annotations = maps.Clone(p.Annotations)
		p.Annotations[v1.LastAppliedConfigAnnotation] = message.Mark
	}
}

// withoutValues returns the containers without the values of their env and of the headers that
// probes and hooks send.
func withoutValues(containers []v1.Container) []v1.Container {
	out := slices.Clone(containers)
	for i := range out {
		c := &out[i]
		c.Env = slices.Clone(c.Env)
		for j := range c.Env {
			if c.Env[j].Value != "" {
				c.Env[j].Value = message.Mark
			}
		}
		for _, p := range []**v1.Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
			if *p != nil {
				one := **p
				one.HTTPGet = requestWithoutValues(one.HTTPGet)
				*p = &one
			}
		}
		if c.Lifecycle != nil {
			l := *c.Lifecycle
			l.PostStart, l.PreStop = hookWithoutValues(l.PostStart), hookWithoutValues(l.PreStop)
			c.Lifecycle = &l
		}
	}
	return out
}

func hookWithoutValues(h *v1.LifecycleHandler) *v1.LifecycleHandler {
	if h == nil {
		return nil
	}
	c := *h
	c.HTTPGet = requestWithoutValues(h.HTTPGet)
	return &c
}

// requestWithoutValues returns the request without the values of its headers.
func requestWithoutValues(a *v1.HTTPGetAction) *v1.HTTPGetAction {
	if a == nil {
		return nil
	}
	c := *a
	c.HTTPHeaders = slices.Clone(a.HTTPHeaders)
	for k := range c.HTTPHeaders {
		c.HTTPHeaders[k].Value = message.Mark
	}
	return &c
}
