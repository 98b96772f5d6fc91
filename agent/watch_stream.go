package agent

import (
	"context"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// listen passes on the runtime's events until their stream ends, and returns why.
func (w *watch) listen(ctx context.Context) error {
	w.streams.Store(true)
	defer w.streams.Store(false)
	first, begun := true, time.Now()
	err := w.cri.Events(ctx, func(e *rt.ContainerEventResponse) {
		if first {
			w.metrics.Stream()
			first = false
		}
		if at := time.Unix(0, e.CreatedAt); at.After(begun) { // those kept from before say nothing of the stream
			w.metrics.Event(at)
		}
		w.event(ctx, e)
	})
	if ctx.Err() == nil && !cri.Unimplemented(err) {
		w.metrics.StreamEnded()
	}
	return err
}
