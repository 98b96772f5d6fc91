package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
)

// notServed returns what reports that an address is not served, in the words of trouble, and why, under the
// key of that problem; with nil it reports that the address is served again.
func (a *Agent) notServed(key, trouble string, served message.Text) func(error) {
	return func(err error) {
		if err == nil {
			a.store.SetProblem(key, "")
			a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeNormal, "Listening", served)
		} else {
			a.store.SetProblem(key, trouble+", and is tried again: "+err.Error())
			a.recordTrouble("FailedListen", err.Error())
		}
		a.node.Wake()
	}
}

// recordTrouble records an error of the node itself.
func (a *Agent) recordTrouble(reason, text string) {
	a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, reason, message.Private(text))
}
