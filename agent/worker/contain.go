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

// caught turns a panic in the work on the worker's pod into *err: an error of
// this pod alone. what is a noun: the log says that it failed. It must be
// deferred itself, in every goroutine that works for the pod.
func (w *Worker) caught(err *error, what, container string) {
	if v := recover(); v != nil {
		*err = panics.New(v)
		w.fault(*err, what, container)
	}
}

// contained calls do, which the pod can do without.
func (w *Worker) contained(what string, do func()) {
	var err error
	defer w.caught(&err, what, "")
	do()
}

// fault reports a panic in the work on the worker's pod. Any goroutine may call it.
func (w *Worker) fault(err error, what, container string) {
	w.Metrics.Panic()
	uid := ""
	if p, ok := w.Store.Pod(w.Key.String()); ok {
		uid = string(p.UID)
	}
	w.Events.Record(events.PodRef(w.Key.Namespace, w.Key.Name, uid), v1.EventTypeWarning, plan.ReasonFault, what+": "+err.Error())
	if !w.Faults.IsNew(w.Key.String()+" "+what+" "+container, err) {
		return
	}
	log := w.Log
	if container != "" {
		log = log.With("container", container)
	}
	log.Error(what+" failed", panics.Logged(err)...)
}

// containedPass runs a pass; one that panics is a pass that failed.
func (w *Worker) containedPass(ctx context.Context, u Update) (again bool, next time.Time) {
	var err error
	func() {
		defer w.caught(&err, "pod sync", "")
		again, next = w.pass(ctx, u)
	}()
	if err == nil {
		return again, next
	}
	for id, st := range w.stops {
		if st.cancel == nil { // the panic came before its goroutine started
			close(st.done)
			delete(w.stops, id)
		}
	}
	w.contained("fault report", func() { w.reportFault(u.Pod, err) })
	return w.passFailed(ctx, err)
}

// reportFault puts a pass's panic into the pod's last status, which stands
// until a later pass reports.
func (w *Worker) reportFault(desired *manifests.Pod, err error) {
	p, reported := w.Store.Pod(w.Key.String())
	switch {
	case reported:
		p = p.DeepCopy()
	case desired != nil:
		p = desired.Pod.DeepCopy()
		p.Status = v1.PodStatus{Phase: v1.PodPending}
	default:
		return
	}
	p.Status.Reason, p.Status.Message = plan.ReasonFault, err.Error()
	w.Store.SetPod(w.Key.String(), p)
}
