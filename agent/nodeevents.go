package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
)

// noTCP reports why the TCP address is not served; nil: it is served again.
func (a *Agent) noTCP(err error) {
	if err == nil {
		a.store.SetProblem("tcp", "")
		a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeNormal, "Listening", message.Fixed("the TCP address is served"))
	} else {
		a.store.SetProblem("tcp", "the TCP address is not served, and is tried again: "+err.Error())
		a.recordTrouble("FailedListen", err.Error())
	}
	a.node.Wake()
}

// recordTrouble records an error of the node itself.
func (a *Agent) recordTrouble(reason, text string) {
	a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, reason, message.Private(text))
}
