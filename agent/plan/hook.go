package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// HookState is how far a postStart hook is that this agent has begun: it runs,
// is done, or has failed.
type HookState struct {
	Done   bool
	Failed string // why, "" if it has not
}

// Hooking reports whether a container runs whose postStart hook is not done:
// to others it does not run yet. A hook that an agent's death has interrupted
// is not done.
func (s *Facts) Hooking(n *pleg.Container) bool {
	if n == nil || !n.Running() {
		return false
	}
	hooked := func(c *v1.Container) bool { return c.Name == n.Name && podspec.PostStart(c) != nil }
	if !slices.ContainsFunc(podspec.AllContainers(s.Pod.Pod), hooked) {
		return false
	}
	if h, begun := s.PostStart[n.ID]; begun {
		return !h.Done
	}
	return s.Checkpoint().HooksDone[n.Name] != n.ID
}

// HookWait is what is reported of a container that hooking is true of.
func (s *Facts) HookWait(n *pleg.Container) Waiting {
	if failed := s.PostStart[n.ID].Failed; failed != "" {
		return Waiting{"PostStartHookError", failed}
	}
	return Waiting{s.PendingReason(), ""}
}

// PendingReason is the reason of a container that is still to come.
func (s *Facts) PendingReason() string {
	if len(s.Pod.Spec.InitContainers) > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// planHooks begins the postStart hooks of what runs, and condemns containers
// whose hook has failed: they are restarted whatever they exit with.
func (s *Facts) planHooks(p *Plan, i *pleg.Instance) {
	var begin, condemn, stop []Action
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if !s.Hooking(n) {
			continue
		}
		h, begun := s.PostStart[n.ID]
		switch {
		case !begun:
			begin = append(begin, Action{Do: DoRunPostStart, UID: i.UID, ID: n.ID, Name: n.Name, Reason: "it has started"})
		case h.Failed != "" && n.Kill == nil: // those that are, planKills stops
			condemn = append(condemn, Action{Do: DoMarkKill, UID: i.UID, ID: n.ID, Name: n.Name, Grace: max(n.Grace, MinGrace),
				Cause: checkpoint.CauseHook, Reason: checkpoint.HookFailed, Text: "PostStart hook failed: " + h.Failed})
			stop = append(stop, stopContainer(i, n, checkpoint.CauseHook, checkpoint.HookFailed))
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
	s       *Facts
	sandbox string
	held    string // the container that the rest waits for
}

func (s *Facts) newQueue(sandbox string) *queue { return &queue{s: s, sandbox: sandbox} }

// waits reports whether the container must wait; n is its newest attempt, or nil.
func (q *queue) waits(p *Plan, c *v1.Container, n *pleg.Container) bool {
	if q.held == "" || n != nil && n.Sandbox == q.sandbox {
		return false
	}
	p.Wait(c.Name, Waiting{q.s.PendingReason(), fmt.Sprintf("waits for the postStart hook of container %s", q.held)})
	return true
}

// pass goes on to the next container; starts: this one is being started.
func (q *queue) pass(c *v1.Container, n *pleg.Container, starts bool) {
	if podspec.PostStart(c) == nil {
		return
	}
	if _, coming := q.s.Fetching[c.Name]; starts || coming || q.s.Hooking(n) && q.s.PostStart[n.ID].Failed == "" {
		q.held = c.Name
	}
}

// planFirst starts the regular containers in a sandbox that is being made.
func (s *Facts) planFirst(p *Plan, i *pleg.Instance, why string) {
	var starts []Action
	q := s.newQueue("")
	for k := range s.Pod.Spec.Containers {
		c := &s.Pod.Spec.Containers[k]
		n := i.NewestStarted(c.Name)
		if n != nil && !MayRestart(s.Pod.Pod, c, n) || q.waits(p, c, n) {
			continue
		}
		start := s.start(p, c, n, why)
		starts = append(starts, start...)
		q.pass(c, nil, len(start) > 0)
	}
	p.then(starts...)
}
