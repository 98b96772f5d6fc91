package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/manifests"
)

// contained does something of the sync loop's for one pod. A panic is that pod's
// problem, and is returned.
func (l *syncLoop) contained(p *v1.Pod, what string, do func()) error {
	err := panics.Contain(do)
	if err != nil {
		l.fault(p, what, err)
	}
	return err
}

// fault tells of a panic in what the sync loop does for one pod.
func (l *syncLoop) fault(p *v1.Pod, what string, err error) {
	key := manifests.KeyOf(p).String()
	l.shared.Metrics.Panic()
	l.shared.Events.Record(events.About(p), v1.EventTypeWarning, plan.ReasonFault, what+": "+err.Error())
	if l.shared.Faults.IsNew(key+" "+what, err.Error()) {
		l.shared.Log.Error("cannot "+what, append(panics.Logged(err), "pod", key)...)
	}
}

// uncounted tells of a pod whose place cannot be counted.
func (l *syncLoop) uncounted(p *v1.Pod, err error) { l.fault(p, "count the pod in", err) }

// containedState is stateOf for scrapes, which ask in goroutines of their own.
func (a *Agent) containedState() (s metrics.State) {
	if err := panics.Contain(func() { s = stateOf(a.store, a.watch, a.sync.wanted()) }); err != nil {
		a.metrics.Panic()
		a.log.Error("some metrics are missing", panics.Logged(err)...)
		return metrics.State{}
	}
	return s
}
