package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/metrics"
	"monopod/agent/overview"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/worker"
	"monopod/manifests"
)

// faults contain panics: a panic becomes the error of the work in which it happened, is counted,
// and is logged once.
type faults struct{ shared *worker.Pool }

// ofPod runs work of the sync loop for one pod. A panic becomes the error of that pod, and is
// returned.
func (f faults) ofPod(p *v1.Pod, what string, do func()) error {
	err := panics.Contain(do)
	if err != nil {
		f.record(p, what, err)
	}
	return err
}

// ofLoop runs work of the sync loop that is not for one pod, such as a report. A panic skips the
// rest of that work.
func (f faults) ofLoop(what string, do func()) {
	err := panics.Contain(do)
	if err != nil {
		f.shared.Metrics.Panic()
	}
	if f.shared.Faults.IsNew(what, err) {
		f.shared.Log.Error("cannot "+what, panics.Logged(err)...)
		f.shared.Events.Record(events.NodeRef(f.shared.Disk.Machine.Cfg.NodeName), v1.EventTypeWarning, plan.ReasonFault, message.Of("cannot %s: %s", message.Name(what), message.Private(err.Error())))
	}
}

// record records and logs a panic in the sync loop's work for one pod.
func (f faults) record(p *v1.Pod, what string, err error) {
	key := manifests.KeyOf(p).String()
	f.shared.Metrics.Panic()
	f.shared.Events.Record(events.About(p), v1.EventTypeWarning, plan.ReasonFault, message.Of("%s: %s", message.Name(what), message.Private(err.Error())))
	if f.shared.Faults.IsNew(key+" "+what, err) {
		f.shared.Log.Error("cannot "+what, append(panics.Logged(err), "pod", key)...)
	}
}

// uncounted records a pod whose allocation cannot be counted.
func (f faults) uncounted(p *v1.Pod, err error) { f.record(p, "count the pod's allocation", err) }

// containedState is overview.State for scrapes, which run in goroutines of their own.
func (a *Agent) containedState() (s metrics.State) {
	err := panics.Contain(func() { s = overview.State(a.store, a.watch, a.pins, a.sync.names()) })
	if a.scrapes.IsNew("state", err) {
		a.log.Error("some metrics are missing", panics.Logged(err)...)
	}
	if err != nil {
		a.metrics.Panic()
		return metrics.State{}
	}
	return s
}
