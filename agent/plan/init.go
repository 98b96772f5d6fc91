package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// planInit plans the init containers of a pod with a usable sandbox. It reports
// whether regular containers may start, and whether an init container failed for
// good. Only containers of the current sandbox count: a new sandbox runs all
// init containers again. A sidecar holds what follows it only until the next
// init container was started, so that its crashes keep no other from restarting.
func (s *Facts) planInit(p *Plan, i *pleg.Instance) (initialized, failed bool) {
	all, here := s.Pod.Spec.InitContainers, i.Sandbox().ID
	if s.underWay(i) {
		for k := range all {
			if podspec.Restartable(&all[k]) {
				s.planSidecar(p, i, &all[k])
			}
		}
		return true, false
	}
	for k := range all {
		c := &all[k]
		if podspec.Restartable(c) {
			if !s.planSidecar(p, i, c) && !laterStarted(all[k+1:], i, here) {
				return false, false
			}
			continue
		}
		if laterStarted(all[k+1:], i, here) {
			continue
		}
		n := i.Newest(c.Name)
		switch {
		case n == nil || n.Sandbox != here:
			p.then(s.start(p, c, n, "it is next in the start order")...)
		case n.Running():
		case n.State == rt.ContainerState_CONTAINER_CREATED:
			p.then(s.resume(p, n)...)
		case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
			p.then(stopContainer(i, n, checkpoint.CauseLost, whyUnknown(n)))
		case Succeeded(n):
			continue
		case MayRestart(s.Pod.Pod, c, n):
			p.then(s.start(p, c, n, ExitReason(n))...)
		default:
			return false, true
		}
		return false, false
	}
	return true, false
}

// planSidecar keeps a sidecar running and reports whether it has started.
func (s *Facts) planSidecar(p *Plan, i *pleg.Instance, c *v1.Container) bool {
	n := i.Newest(c.Name)
	switch {
	case n == nil:
		p.then(s.start(p, c, nil, "it is next in the start order")...)
	case n.Exited():
		p.then(s.start(p, c, n, ExitReason(n))...)
	case n.State == rt.ContainerState_CONTAINER_CREATED:
		p.then(s.resume(p, n)...)
	case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
		p.then(stopContainer(i, n, checkpoint.CauseLost, whyUnknown(n)))
	default:
		started, _ := s.Health(c, n)
		return started && !s.Hooking(n)
	}
	return false
}

// underWay reports whether a regular container is alive in the current sandbox: then the init
// containers have succeeded, even if they were removed since.
func (s *Facts) underWay(i *pleg.Instance) bool {
	for k := range s.Pod.Spec.Containers {
		if n := i.Newest(s.Pod.Spec.Containers[k].Name); n != nil && n.Live() && n.Sandbox == i.Sandbox().ID {
			return true
		}
	}
	return false
}

// laterStarted reports whether one of these init containers was started in
// the sandbox, which proves that those before it succeeded, or had started.
func laterStarted(later []v1.Container, i *pleg.Instance, sandbox string) bool {
	for k := range later {
		if n := i.Newest(later[k].Name); n != nil && n.Sandbox == sandbox {
			return true
		}
	}
	return false
}

// RegularMade reports whether a regular container was created in the current sandbox.
func RegularMade(pod *v1.Pod, i *pleg.Instance) bool {
	b := i.Sandbox()
	return b != nil && slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
		n := i.Newest(c.Name)
		return n != nil && n.Sandbox == b.ID
	})
}
