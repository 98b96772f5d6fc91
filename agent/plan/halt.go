package plan

import (
	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
)

// planHalted stops the pod in order and removes its sandboxes. Its checkpoint and its
// volumes stay.
func (s *Facts) planHalted(p *Plan) {
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		p.Wait(c.Name, Waiting{Reason: s.Halted.Reason})
	}
	i := s.Instance()
	if i == nil {
		return
	}
	planStop(p, i, s.Pod.Pod, checkpoint.CausePod, s.Halted.Message, 0)
	var remove []Action
	for _, b := range i.Sandboxes {
		remove = append(remove, Action{Do: DoRemoveSandbox, UID: i.UID, ID: b.ID, Reason: s.Halted.Message})
	}
	p.then(remove...)
}

// IsHalted reports whether nothing of the pod is there that is not to run.
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
