package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/overview"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/manifests"
)

// contained runs work of the sync loop for one pod. A panic is that pod's error, and
// is returned.
func (l *syncLoop) contained(p *v1.Pod, what string, do func()) error {
	err := panics.Contain(do)
	if err != nil {
		l.fault(p, what, err)
	}
	return err
}

// fault records and logs a panic in the sync loop's work for one pod.
func (l *syncLoop) fault(p *v1.Pod, what string, err error) {
	key := manifests.KeyOf(p).String()
	l.shared.Metrics.Panic()
	l.shared.Events.Record(events.About(p), v1.EventTypeWarning, plan.ReasonFault, what+": "+err.Error())
	if l.shared.Faults.IsNew(key+" "+what, err) {
		l.shared.Log.Error("cannot "+what, append(panics.Logged(err), "pod", key)...)
	}
}

// uncounted records a pod whose allocation cannot be counted.
func (l *syncLoop) uncounted(p *v1.Pod, err error) { l.fault(p, "count the pod's allocation", err) }

// containedState is overview.State for scrapes, which run in goroutines of their own.
func (a *Agent) containedState() (s metrics.State) {
	if err := panics.Contain(func() { s = overview.State(a.store, a.watch, a.sync.desired.Names()) }); err != nil {
		a.metrics.Panic()
		a.log.Error("some metrics are missing", panics.Logged(err)...)
		return metrics.State{}
	}
	return s
}
