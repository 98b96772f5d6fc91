package worker

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/plan"
)

// recordNetwork records, once, that the pod waits for the runtime's network. A sandbox
// that failed before waits for nothing else any longer: the network was why.
func (w *Worker) recordNetwork(s *plan.Facts, p *plan.Plan) {
	now, waits := p.NetworkWait()
	if waits && len(p.Steps) == 0 {
		delete(w.failures, plan.SandboxFailure)
	}
	if now.Message != w.noNetwork && waits {
		w.Log.Warn("pod waits for the network", "reason", now.Reason, "err", s.NoNetwork)
		w.Events.Record(events.About(s.Pod.Pod), v1.EventTypeWarning, now.Reason, now.Message)
	}
	w.noNetwork = now.Message
}
