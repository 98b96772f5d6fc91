package agent

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/panics"
	"monopod/manifests"
)

// reasonFault is the reason of a pod that the agent itself fails at.
const reasonFault = "FailedSync"

// faults remembers which panics were said, by pod and what was done, so that each is
// said once and not with each retry. Any goroutine may use it.
type faults struct {
	mu   sync.Mutex
	said map[string]string
}

func (f *faults) isNew(what, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said[what] == text {
		return false
	}
	if f.said == nil {
		f.said = map[string]string{}
	}
	f.said[what] = text
	return true
}

// caught ends a panic in the work on the worker's pod and makes *err say so: it
// is an error like any other of this pod, and no other pod's. It must be deferred
// itself, in every goroutine that works for the pod.
func (w *worker) caught(err *error, what, container string) {
	if v := recover(); v != nil {
		*err = panics.New(v)
		w.fault(*err, what, container)
	}
}

// contained does something that the pod can do without.
func (w *worker) contained(what string, do func()) {
	var err error
	defer w.caught(&err, what, "")
	do()
}

// fault tells of a panic in the work on the worker's pod. It is for any goroutine.
func (w *worker) fault(err error, what, container string) {
	w.metrics.Panic()
	uid := ""
	if p, ok := w.store.Pod(w.key.String()); ok {
		uid = string(p.UID)
	}
	w.events.Record(events.PodRef(w.key.Namespace, w.key.Name, uid), v1.EventTypeWarning, reasonFault, what+": "+err.Error())
	if !w.faults.isNew(w.key.String()+" "+what+" "+container, err.Error()) {
		return
	}
	log := w.log
	if container != "" {
		log = log.With("container", container)
	}
	log.Error("cannot "+what, panics.Logged(err)...)
}

// containedPass is a pass whose panic is a pass that failed.
func (w *worker) containedPass(ctx context.Context, u Update) (again bool, next time.Time) {
	var err error
	func() {
		defer w.caught(&err, "look after the pod", "")
		again, next = w.pass(ctx, u)
	}()
	if err == nil {
		return again, next
	}
	for id, st := range w.stops {
		if st.cancel == nil { // the panic came before it went on its way
			close(st.done)
			delete(w.stops, id)
		}
	}
	w.contained("report a fault", func() { w.reportFault(u.Pod, err) })
	return w.trouble(ctx, err)
}

// reportFault shows in the pod's status that a pass failed in the agent itself,
// until one gets as far as the report. What was reported last stays beside it.
func (w *worker) reportFault(wish *manifests.Pod, err error) {
	p, reported := w.store.Pod(w.key.String())
	switch {
	case reported:
		p = p.DeepCopy()
	case wish != nil:
		p = wish.Pod.DeepCopy()
		p.Status = v1.PodStatus{Phase: v1.PodPending}
	default:
		return
	}
	p.Status.Reason, p.Status.Message = reasonFault, err.Error()
	w.store.SetPod(w.key.String(), p)
}

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
	l.shared.metrics.Panic()
	l.shared.events.Record(podRef(p), v1.EventTypeWarning, reasonFault, what+": "+err.Error())
	if l.shared.faults.isNew(key+" "+what, err.Error()) {
		l.shared.log.Error("cannot "+what, append(panics.Logged(err), "pod", key)...)
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
