package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// MinGrace is the shortest grace period between SIGTERM and SIGKILL (kubelet:
// minimumGracePeriodInSeconds).
const MinGrace = 2 * time.Second

// leastGrace is the shortest grace period of a pod that stops: without any its preStop hooks run,
// too (kubelet: the same).
const leastGrace = time.Second

// atOnce is a used time that exceeds any grace period.
const atOnce time.Duration = 1<<63 - 1

// Stopping is a container stop that is running
type Stopping struct {
	Whole bool      // as in Action
	Retry time.Time // when the failed stop is retried; zero: it is running
	Late  bool      // it failed, and the container's grace period is over
}

// stopContainer stops one container of a pod that continues to run.
func stopContainer(i *pleg.Instance, c *pleg.Container, cause checkpoint.Cause, why string) Action {
	a := stopWithin(i, c, why, 0)
	a.Cause = cause
	return a
}

// stopWithin stops a container that has used up a part of its grace period. A
// preStop hook runs only if some of it is left.
func stopWithin(i *pleg.Instance, c *pleg.Container, why string, used time.Duration) Action {
	left := min(c.Grace-max(used, 0), c.Grace)
	a := Action{Do: DoStopContainer, UID: i.UID, ID: c.ID, Name: c.Name, Grace: max(left, MinGrace), Reason: why}
	if left > 0 {
		a.PreStop = c.PreStop
	}
	return a
}

// planStop stops an instance's containers, all at once except sidecars, which wait for the
// containers that rely on them; then its sandboxes. used is how long ago this agent or a previous
// one started the stop. pod is nil if the instance's manifest is not known; then no container
// waits.
func planStop(p *Plan, i *pleg.Instance, pod *v1.Pod, cause checkpoint.Cause, why string, used time.Duration) {
	var stops []Action
	inUse := map[string]bool{} // sandboxes with live containers: a dead sandbox may have some
	for _, c := range i.Containers {
		if !c.Alive() {
			continue
		}
		inUse[c.Sandbox] = true
		c.Grace = max(c.Grace, leastGrace)
		a := stopWithin(i, &c, why, used)
		a.Whole, a.Cause, a.Behind = true, cause, behind(i, pod, c.Name)
		stops = append(stops, a)
	}
	p.then(stops...)
	var down []Action
	for _, b := range i.Sandboxes {
		if b.Ready || inUse[b.ID] {
			down = append(down, Action{Do: DoStopSandbox, UID: i.UID, ID: b.ID, Reason: why})
		}
	}
	p.then(down...)
}

// planRelease stops the newest sandbox if it is dead: until then the runtime keeps its address and
// its mounts (the kubelet stops it, too). If the runtime fails, nothing waits for it: the removal
// of the sandbox releases them.
func (s *Facts) planRelease(p *Plan, i *pleg.Instance, why string) {
	b := i.Sandbox()
	if b == nil || b.Ready || slices.ContainsFunc(i.Containers, func(c pleg.Container) bool { return c.Alive() && c.Sandbox == b.ID }) {
		return // planStop does it
	}
	a := Action{Do: DoStopSandbox, UID: i.UID, ID: b.ID, Reason: why}
	if s.Failures[a.Key()].Count == 0 {
		p.then(a)
	}
}

// behind returns the ids of the containers that stop before the named one: for a sidecar all
// regular containers and the later sidecars.
func behind(i *pleg.Instance, pod *v1.Pod, name string) []string {
	if pod == nil {
		return nil
	}
	first, found := map[string]bool{}, false
	for k := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[k]; podspec.Restartable(c) {
			first[c.Name] = found
			found = found || c.Name == name
		}
	}
	if !found {
		return nil
	}
	for k := range pod.Spec.Containers {
		first[pod.Spec.Containers[k].Name] = true
	}
	var ids []string
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Alive() && first[c.Name] {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// await removes from a plan the stops that already run, and the steps that must wait until the
// whole pod is down. A plan does not wait for a container whose stop failed beyond its grace
// period: it ends with its sandbox or the pod's cgroup (the kubelet stops sandboxes even if a
// container stop failed).
func (s *Facts) await(p *Plan) {
	for k := 0; k < len(p.Steps); k++ {
		var rest []Action
		wait := false
		for _, a := range p.Steps[k] {
			stop, known := s.Stopping[a.ID]
			if a.Do != DoStopContainer || !known || a.Whole && !stop.Whole {
				rest = append(rest, a)
				continue
			}
			if !stop.Retry.IsZero() {
				p.wakeAt(stop.Retry)
			}
			wait = wait || a.Whole && !stop.Late
		}
		p.Steps[k] = rest
		if wait {
			p.Steps = p.Steps[:k+1]
		}
	}
}
