package plan

import (
	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
)

// newSandbox says why the pod needs a new sandbox, "" if it does not.
func (s *Facts) newSandbox(i *pleg.Instance) string {
	if s.sandboxReplaced() {
		return checkpoint.RestartRequested
	}
	return SandboxTrouble(s.Pod.Pod, i)
}
