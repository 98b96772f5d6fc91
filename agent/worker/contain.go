package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/manifests"
)

// caught ends a panic in the work on the worker's pod and makes *err say so: it
// is an error like any other of this pod, and no other pod's. It must be deferred
// itself, in every goroutine that works for the pod.
func (w *Worker) caught(err *error, what, container string) {
	if v := recover(); v != nil {
		*err = panics.New(v)
		w.fault(*err, what, container)
	}
}

// contained does something that the pod can do without.
func (w *Worker) contained(what string, do func()) {
	var err error
	defer w.caught(&err, what, "")
	do()
}

// fault tells of a panic in the work on the worker's pod. It is for any goroutine.
func (w *Worker) fault(err error, what, container string) {
	w.Metrics.Panic()
	uid := ""
	if p, ok := w.Store.Pod(w.Key.String()); ok {
		uid = string(p.UID)
	}
	w.Events.Record(events.PodRef(w.Key.Namespace, w.Key.Name, uid), v1.EventTypeWarning, plan.ReasonFault, what+": "+err.Error())
	if !w.Faults.IsNew(w.Key.String()+" "+what+" "+container, err.Error()) {
		return
	}
	log := w.Log
	if container != "" {
		log = log.With("container", container)
	}
	log.Error("cannot "+what, panics.Logged(err)...)
}

// containedPass is a pass whose panic is a pass that failed.
func (w *Worker) containedPass(ctx context.Context, u Update) (again bool, next time.Time) {
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
	return w.passFailed(ctx, err)
}

// reportFault shows in the pod's status that a pass failed in the agent itself,
// until one gets as far as the report. What was reported last stays beside it.
func (w *Worker) reportFault(wish *manifests.Pod, err error) {
	p, reported := w.Store.Pod(w.Key.String())
	switch {
	case reported:
		p = p.DeepCopy()
	case wish != nil:
		p = wish.Pod.DeepCopy()
		p.Status = v1.PodStatus{Phase: v1.PodPending}
	default:
		return
	}
	p.Status.Reason, p.Status.Message = plan.ReasonFault, err.Error()
	w.Store.SetPod(w.Key.String(), p)
}
