package agent

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// hookState is how far a postStart hook is that this agent has begun: it runs,
// is done, or has failed.
type hookState struct {
	Done   bool
	Failed string // why, "" if it has not
}

func postStart(c *v1.Container) *v1.LifecycleHandler {
	if c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PostStart
}

// hooking reports whether a container runs whose postStart hook is not done:
// to others it does not run yet. A hook that an agent's death has interrupted
// is not done.
func (s *situation) hooking(n *container) bool {
	if n == nil || !n.running() {
		return false
	}
	hooked := func(c *v1.Container) bool { return c.Name == n.Name && postStart(c) != nil }
	if !slices.ContainsFunc(allContainers(s.Pod.Pod), hooked) {
		return false
	}
	if h, begun := s.PostStart[n.ID]; begun {
		return !h.Done
	}
	return s.known().Hooked[n.Name] != n.ID
}

// hookWait is what is reported of a container that hooking is true of.
func (s *situation) hookWait(n *container) waiting {
	if failed := s.PostStart[n.ID].Failed; failed != "" {
		return waiting{"PostStartHookError", failed}
	}
	return waiting{s.notYet(), ""}
}

// notYet is the reason of a container that is still to come.
func (s *situation) notYet() string {
	if len(s.Pod.Spec.InitContainers) > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// planHooks begins the postStart hooks of what runs, and condemns containers
// whose hook has failed: they are restarted whatever they exit with.
func (s *situation) planHooks(p *planned, i *instance) {
	var begin, condemn, stop []action
	for _, c := range allContainers(s.Pod.Pod) {
		n := i.newest(c.Name)
		if !s.hooking(n) {
			continue
		}
		h, begun := s.PostStart[n.ID]
		switch {
		case !begun:
			begin = append(begin, action{Do: doRunPostStart, UID: i.UID, ID: n.ID, Name: n.Name, Reason: "it has started"})
		case h.Failed != "" && n.Condemned == nil: // those that are, planKills stops
			condemn = append(condemn, action{Do: doCondemn, UID: i.UID, ID: n.ID, Name: n.Name, Grace: max(n.Grace, minGrace),
				Cause: causeHook, Reason: hookFailed, Text: "PostStart hook failed: " + h.Failed})
			stop = append(stop, stopContainer(i, n, causeHook, hookFailed))
		}
	}
	p.then(begin...)
	p.then(condemn...)
	p.then(stop...)
}

// queue starts regular containers in the manifest's order where that matters:
// what comes after a container with a postStart hook waits until the hook is
// done, has failed, or cannot be run yet. Only the first start in a sandbox waits.
type queue struct {
	s       *situation
	sandbox string
	held    string // the container that the rest waits for
}

func (s *situation) newQueue(sandbox string) *queue { return &queue{s: s, sandbox: sandbox} }

// waits reports whether the container must wait; n is its newest attempt, or nil.
func (q *queue) waits(p *planned, c *v1.Container, n *container) bool {
	if q.held == "" || n != nil && n.Sandbox == q.sandbox {
		return false
	}
	p.wait(c.Name, waiting{q.s.notYet(), fmt.Sprintf("waits for the postStart hook of container %s", q.held)})
	return true
}

// pass goes on to the next container; starts: this one is being started.
func (q *queue) pass(c *v1.Container, n *container, starts bool) {
	if postStart(c) == nil {
		return
	}
	if _, coming := q.s.Fetching[c.Name]; starts || coming || q.s.hooking(n) && q.s.PostStart[n.ID].Failed == "" {
		q.held = c.Name
	}
}

// planFirst starts the regular containers in a sandbox that is being made.
func (s *situation) planFirst(p *planned, i *instance, why string) {
	var starts []action
	q := s.newQueue("")
	for k := range s.Pod.Spec.Containers {
		c := &s.Pod.Spec.Containers[k]
		n := i.begun(c.Name)
		if n != nil && !mayRestart(s.Pod.Pod, c, n) || q.waits(p, c, n) {
			continue
		}
		start := s.start(p, c, n, why)
		starts = append(starts, start...)
		q.pass(c, nil, len(start) > 0)
	}
	p.then(starts...)
}
