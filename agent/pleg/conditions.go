package pleg

import (
	"fmt"
	"maps"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/status"
)

// recordReady records that the node can or cannot run pods, because its runtime is up or down.
func (w *Watch) recordReady(kind, reason string) {
	w.Events.Record(events.NodeRef(w.Node), kind, reason, message.Of("Node %s status is now: %s", message.Name(w.Node), message.Name(reason)))
}

// State returns the runtime's state.
func (w *Watch) State() status.Runtime {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// condition is a false condition of the runtime.
type condition struct{ kind, reason, message string }

// String returns the kubelet's text.
func (c condition) String() string {
	return fmt.Sprintf("%s=false reason:%s message:%s", c.kind, c.reason, c.message)
}

// recordConditions keeps the runtime's false conditions. nil means a runtime that did not answer. Any
// goroutine may call it, and be the first to learn of a network: Run then wakes the pods that wait for it.
func (w *Watch) recordConditions(st *rt.StatusResponse) {
	wrong := map[string]condition{}
	for _, c := range st.GetStatus().GetConditions() {
		if !c.Status {
			wrong[c.Type] = condition{c.Type, c.Reason, c.Message}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(wrong, w.wrong) {
		return
	}
	before := w.noNetwork()
	w.wrong = wrong
	w.signalChange()
	if before != "" && w.noNetwork() != before {
		w.network.Wake()
	}
}

// Changed signals one reader that the runtime's state has changed.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// signalChange signals the node's reporter that the runtime's state has changed.
func (w *Watch) signalChange() {
	w.changed.Wake()
}

// NotReady returns why the node is not ready for pods; none if it is ready.
func (w *Watch) NotReady() []message.Text {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []message.Text
	runtime, isWrong := w.wrong[rt.RuntimeReady]
	switch {
	case isWrong:
		out = append(out, message.Of("container runtime not ready: %s", message.Private(runtime.String())))
	case w.state.Error == notAskedYet:
		out = append(out, message.Fixed("container runtime status check may not have completed yet"))
	case !w.state.Up:
		out = append(out, message.Of("container runtime is down: %s", message.Private(w.state.Error)))
	}
	network, isWrong := w.wrong[rt.NetworkReady]
	if isWrong {
		out = append(out, message.Instead("container runtime network not ready: "+network.String(), message.Fixed("container runtime network not ready")))
	}
	return out
}
