package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// HookState is the state of a postStart hook that this agent started: it runs,
// is done, or has failed.
type HookState struct {
	Done   bool
	Failed string // why it has failed; "": it has not
}

// Hooking reports whether a container runs and its postStart hook is not done:
// the container does not count as running yet. A hook that the agent's death
// interrupted is not done.
func (s *Facts) Hooking(n *pleg.Container) bool {
	if n == nil || !n.Running() {
		return false
	}
	hooked := func(c *v1.Container) bool { return c.Name == n.Name && podspec.PostStart(c) != nil }
	if !slices.ContainsFunc(podspec.AllContainers(s.Pod.Pod), hooked) {
		return false
	}
	if h, started := s.PostStart[n.ID]; started {
		return !h.Done
	}
	return s.Checkpoint().HooksDone[n.Name] != n.ID
}

// HookWait returns the reported state of a container for which Hooking is true.
func (s *Facts) HookWait(n *pleg.Container) Waiting {
	if failed := s.PostStart[n.ID].Failed; failed != "" {
		return Waiting{"PostStartHookError", message.Private(failed)}
	}
	return Waiting{Reason: s.PendingReason()}
}

// PendingReason returns the waiting reason of a container that has not started yet.
func (s *Facts) PendingReason() string {
	if len(s.Pod.Spec.InitContainers) > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// planHooks starts the postStart hooks of running containers, and plans kill decisions for those
// whose hook failed: they restart whatever their exit code.
func (s *Facts) planHooks(p *Plan, i *pleg.Instance) {
	var start, kill, stop []Action
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if !s.Hooking(n) {
			continue
		}
		h, started := s.PostStart[n.ID]
		switch {
		case !started:
			start = append(start, Action{Do: DoRunPostStart, UID: i.UID, ID: n.ID, Name: n.Name, Reason: "it has started"})
		case h.Failed != "" && n.Kill == nil: // planKills stops those with a kill decision
			kill = append(kill, Action{Do: DoMarkKill, UID: i.UID, ID: n.ID, Name: n.Name, Grace: n.Grace,
				Cause: checkpoint.CauseHook, Reason: checkpoint.HookFailed, Text: "PostStart hook failed: " + h.Failed})
			stop = append(stop, stopContainer(i, n, checkpoint.CauseHook, checkpoint.HookFailed))
		}
	}
	p.then(start...)
	p.then(kill...)
	p.then(stop...)
}

// queue starts regular containers in the manifest's order where that matters: containers after one
// with a postStart hook wait until the hook is done, has failed, or cannot run yet. Only the first
// start in a sandbox waits.
type queue struct {
	s       *Facts
	sandbox string
	held    string // the container that the others wait for
}

func (s *Facts) newQueue(sandbox string) *queue { return &queue{s: s, sandbox: sandbox} }

// waits reports whether the container must wait. n is its newest attempt, or nil.
func (q *queue) waits(p *Plan, c *v1.Container, n *pleg.Container) bool {
	if q.held == "" || n != nil && n.Sandbox == q.sandbox {
		return false
	}
	p.Wait(c.Name, Waiting{q.s.PendingReason(), message.Of("waits for the postStart hook of container %s", message.Name(q.held))})
	return true
}

// pass moves on to the next container. starts: the plan starts this one.
func (q *queue) pass(c *v1.Container, n *pleg.Container, starts bool) {
	if podspec.PostStart(c) == nil {
		return
	}
	if _, pulling := q.s.Fetching[c.Name]; starts || pulling || q.s.Hooking(n) && q.s.PostStart[n.ID].Failed == "" {
		q.held = c.Name
	}
}

// planFirst starts the regular containers in a sandbox that the same plan creates.
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
