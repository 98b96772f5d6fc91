package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/events"
	"monopod/manifests"
)

// recordRefusal records why a pod is not admitted.
func (l *syncLoop) recordRefusal(p *manifests.Pod, r admission.Rejection) {
	l.shared.Events.Record(events.About(p.Pod), v1.EventTypeWarning, r.Reason, r.Message)
}
