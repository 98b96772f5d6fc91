package pleg

import (
	"context"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// listen handles the runtime's events until the stream ends, and returns why.
func (w *Watch) listen(ctx context.Context) error {
	w.Streams.Store(true)
	defer w.Streams.Store(false)
	first, start := true, time.Now()
	err := w.cri.Events(ctx, w.Marks.Text(), func(e *rt.ContainerEventResponse) {
		if first {
			w.Metrics.Stream()
			first = false
		}
		if at := time.Unix(0, e.CreatedAt); at.After(start) { // earlier events do not show the stream's delay
			w.Metrics.Event(at)
		}
		w.event(e)
	})
	if ctx.Err() == nil && !cri.Unimplemented(err) {
		w.Metrics.StreamEnded()
	}
	return err
}

// reportsEvents reports whether the runtime says of itself that it streams events: CRI-O does, from
// 1.33 on. One that is about to end may end a stream at once, as one without events does.
func (w *Watch) reportsEvents(ctx context.Context) bool {
	info, err := w.cri.Info(ctx)
	return err == nil && info.CRIO != nil && info.CRIO.PodEvents
}

// event wakes the worker of the pod that an event is about. The relist covers events without a pod.
func (w *Watch) event(e *rt.ContainerEventResponse) {
	b := e.GetPodSandboxStatus()
	if !w.Marks.Has(b.GetId(), b.GetLabels()) || !wellFormed(b.GetLabels()) {
		return
	}
	w.Workers.Wake(KeyOf(b.Labels))
}
