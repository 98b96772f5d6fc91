package plan

import (
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// Halt is why no container of a pod may run though its volumes stay; zero: they may run.
type Halt struct {
	Waiting
	// Terminated: the machine shuts down. The pod has failed, and starts from the beginning when it
	// runs again, whatever its restart policy.
	Terminated bool
	Grace      time.Duration // then the longest grace period of a container, preStop hooks included
}

// planHalted stops the pod in order and removes its sandboxes. Its checkpoint and its
// volumes stay.
func (s *Facts) planHalted(p *Plan) {
	i := s.Instance()
	if !s.Halted.Terminated {
		for _, c := range podspec.AllContainers(s.Pod.Pod) {
			p.Wait(c.Name, Waiting{Reason: s.Halted.Reason})
		}
	}
	if s.planEnded(p, i) {
		return
	}
	s.planInterrupted(p, i)
	if i == nil {
		return
	}
	planStop(p, i, s.Pod.Pod, checkpoint.CausePod, s.Halted.Message.String(), 0)
	if s.Halted.Terminated {
		p.shorten(s.Halted.Grace)
	}
	var remove []Action
	for _, b := range i.Sandboxes {
		remove = append(remove, Action{Do: DoRemoveSandbox, UID: i.UID, ID: b.ID, Reason: s.Halted.Message.String()})
	}
	p.then(remove...)
}

// planEnded ends a pod whose work was over before the halt: its result is recorded, even if
// something of it is still being stopped for that, or nothing of it runs. It reports whether this
// applies.
func (s *Facts) planEnded(p *Plan, i *pleg.Instance) bool {
	c := s.Known[string(s.Pod.UID)]
	if c == nil {
		return false
	}
	isOver := c.Result != nil || !c.IsInterrupted() && i != nil && !i.AnyAlive() && len(i.Containers) > 0
	if !isOver {
		return false
	}
	v := s.result(p, i)
	if v == nil {
		return false
	}
	s.planEnd(p, i, *v)
	if s.Halted.Terminated {
		p.shorten(s.Halted.Grace)
	}
	return true
}

// planInterrupted records that the pod is interrupted, before anything of it stops: otherwise the
// stop would end a pod that never restarts, and use up an attempt of a Job.
func (s *Facts) planInterrupted(p *Plan, i *pleg.Instance) {
	c := s.Known[string(s.Pod.UID)]
	if c == nil {
		return
	}
	sandbox := ""
	if b := i.Sandbox(); b != nil {
		sandbox = b.ID
	}
	if !c.IsInterrupted() || sandbox != "" && sandbox != c.ReplaceSandbox {
		active, _ := s.active()
		p.then(Action{Do: DoInterrupt, UID: string(s.Pod.UID), ID: sandbox, Excused: s.excusedAll(i), Active: active, Reason: s.Halted.Message.String()})
	}
}

// excused returns the containers of a Job, of these, whose newest attempts are none of those that
// the Job has: they do not fail, but are stopped.
func (s *Facts) excused(i *pleg.Instance, of ...string) (names []string) {
	if _, ok := annotations.JobRetriesOf(s.Pod.Pod); !ok {
		return nil
	}
	for _, name := range of {
		if n := i.Newest(name); n != nil && (n.Alive() || n.BrokenOff || Succeeded(n)) && !askedToStart(n) {
			names = append(names, name)
		}
	}
	return names
}

// excusedAll is excused for all containers of the pod.
func (s *Facts) excusedAll(i *pleg.Instance) []string {
	var names []string
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		names = append(names, c.Name)
	}
	return s.excused(i, names...)
}

// shorten limits the grace period of all container stops.
func (p *Plan) shorten(most time.Duration) {
	for _, step := range p.Steps {
		for k := range step {
			if step[k].Do == DoStopContainer {
				step[k].Grace = max(min(step[k].Grace, most), MinGrace)
			}
		}
	}
}

// IsHalted reports whether nothing of the pod is left that the halt must stop.
func (s *Facts) IsHalted() bool {
	if s.Pod == nil || s.Halted.Reason == "" || s.Instance() != nil || len(s.Leaving()) > 0 {
		return false
	}
	for _, r := range s.Running {
		if r.Makes {
			return false
		}
	}
	return true
}
