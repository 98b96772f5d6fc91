package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// MinGrace is the least time a container gets between SIGTERM and SIGKILL, as
// with the kubelet (spec: killing, minimum).
const MinGrace = 2 * time.Second

// atOnce leaves nothing of any grace.
const atOnce time.Duration = 1<<63 - 1

// Stopping is a stop of a container that is under way, or went wrong.
type Stopping struct {
	Whole bool      // as in action
	Retry time.Time // it went wrong and is tried again then; zero: it is under way
	Late  bool      // it went wrong, and the container's grace is over
}

// stopContainer stops one container of a pod that goes on.
func stopContainer(i *pleg.Instance, c *pleg.Container, what checkpoint.Cause, why string) Action {
	a := stopWithin(i, c, why, 0)
	a.Cause = what
	return a
}

// stopWithin stops a container of whose grace some is used up already. A hook
// runs only in what is left of it.
func stopWithin(i *pleg.Instance, c *pleg.Container, why string, used time.Duration) Action {
	left := min(c.Grace-max(used, 0), c.Grace)
	a := Action{Do: DoStopContainer, UID: i.UID, ID: c.ID, Name: c.Name, Grace: max(left, MinGrace), Reason: why}
	if left > 0 {
		a.PreStop = c.PreStop
	}
	return a
}

// planStop stops an instance's containers, all at once but for sidecars, which
// wait for what relies on them; then its sandboxes. used is how long ago the
// stop was begun, by this agent or a former one. pod may be nil when nobody
// knows what the instance was made from; then nobody waits.
func planStop(p *Plan, i *pleg.Instance, pod *v1.Pod, what checkpoint.Cause, why string, used time.Duration) {
	var stops []Action
	inUse := map[string]bool{} // sandboxes: a dead one may have containers that outlive it
	for k := range i.Containers {
		c := &i.Containers[k]
		if !c.Alive() {
			continue
		}
		inUse[c.Sandbox] = true
		a := stopWithin(i, c, why, used)
		a.Whole, a.Cause, a.Behind = true, what, behind(i, pod, c.Name)
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

// behind returns the ids of the containers that are to stop before the one of
// that name: for a sidecar all regular ones, and the sidecars after it.
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

// await takes out of a plan the stops that are under way already, and what has
// to wait until the whole pod is down. A container that does not let itself be
// stopped within its grace is not waited for: its sandbox's end, or that of the
// pod's cgroup, is its own (kubelet: sandboxes are stopped even if that of a
// container failed).
func (s *Facts) await(p *Plan) {
	for k := 0; k < len(p.Steps); k++ {
		var rest []Action
		wait := false
		for _, a := range p.Steps[k] {
			u, known := s.Stopping[a.ID]
			if a.Do != DoStopContainer || !known || a.Whole && !u.Whole {
				rest = append(rest, a)
				continue
			}
			if !u.Retry.IsZero() {
				p.wakeAt(u.Retry)
			}
			wait = wait || a.Whole && !u.Late
		}
		p.Steps[k] = rest
		if wait {
			p.Steps = p.Steps[:k+1]
		}
		if len(rest) == 0 {
			p.Steps = append(p.Steps[:k], p.Steps[k+1:]...)
			k--
		}
	}
}
