package agent

import (
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// planInit plans the init containers of a pod whose sandbox is in order. It
// reports whether all have done what regular containers wait for, and whether
// one has failed for good. Only containers of the present sandbox count: a new
// sandbox is initialized anew.
func (s *situation) planInit(p *planned, i *instance) (initialized, failed bool) {
	all, here := s.Pod.Spec.InitContainers, i.sandbox().ID
	if s.underWay(i) {
		for k := range all {
			if restarts(&all[k]) {
				s.planSidecar(p, i, &all[k])
			}
		}
		return true, false
	}
	for k := range all {
		c := &all[k]
		if restarts(c) {
			if !s.planSidecar(p, i, c) {
				return false, false
			}
			continue
		}
		if laterStarted(all[k+1:], i, here) {
			continue
		}
		n := i.newest(c.Name)
		switch {
		case n == nil || n.Sandbox != here:
			p.then(s.start(p, c, n, "its turn has come")...)
		case n.running():
		case n.State == rt.ContainerState_CONTAINER_CREATED:
			p.then(s.resume(p, n)...)
		case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
			p.then(stopContainer(i, n, causeLost, "the runtime has lost track of it"))
		case succeeded(n):
			continue
		case mayRestart(s.Pod.Pod, c, n):
			p.then(s.start(p, c, n, exitReason(n))...)
		default:
			return false, true
		}
		return false, false
	}
	return true, false
}

// planSidecar keeps a sidecar running and reports whether it has started.
func (s *situation) planSidecar(p *planned, i *instance, c *v1.Container) bool {
	n := i.newest(c.Name)
	switch {
	case n == nil:
		p.then(s.start(p, c, nil, "its turn has come")...)
	case n.exited():
		p.then(s.start(p, c, n, exitReason(n))...)
	case n.State == rt.ContainerState_CONTAINER_CREATED:
		p.then(s.resume(p, n)...)
	case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
		p.then(stopContainer(i, n, causeLost, "the runtime has lost track of it"))
	default:
		started, _ := s.health(c, n)
		return started && !s.hooking(n)
	}
	return false
}

// underWay reports whether a regular container lives in the present sandbox:
// then the init containers are behind it, even if they were removed since.
func (s *situation) underWay(i *instance) bool {
	for k := range s.Pod.Spec.Containers {
		if n := i.newest(s.Pod.Spec.Containers[k].Name); n != nil && n.live() && n.Sandbox == i.sandbox().ID {
			return true
		}
	}
	return false
}

// laterStarted reports whether one of these init containers was started in
// the sandbox, which proves that those before it had succeeded.
func laterStarted(later []v1.Container, i *instance, sandbox string) bool {
	for k := range later {
		if n := i.newest(later[k].Name); n != nil && n.Sandbox == sandbox {
			return true
		}
	}
	return false
}
