package worker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

// Update is the desired state of a worker's pod.
type Update struct {
	Pod        *manifests.Pod // nil: everything of it must go
	Generation uint64         // counts the updates of all workers; States repeat it
	Read       time.Time      // when this version was first read; zero: not known
}

// State is what a worker tells the sync loop of its pod.
type State struct {
	Key        manifests.Key
	UID        types.UID // of the desired pod, "" without one
	Generation uint64    // of the update
	Cleared    bool      // nothing of previous versions is left
	Ended      bool      // the desired pod has ended for good
	Ready      bool      // pods that start after the desired pod may start
	Gone       bool      // nothing is left, and no pod is desired
}

// reportState tells the sync loop when the pod takes less of the node than before.
func (w *Worker) reportState(ctx context.Context, s *plan.Facts) {
	now := State{Key: w.Key, Generation: w.current.Generation, Cleared: len(s.Leaving()) == 0}
	if s.Pod != nil {
		now.UID = s.Pod.UID
		now.Ended = now.Cleared && s.Checkpoint().Ended() != ""
		now.Ready = now.Cleared && podstatus.IsReady(w.lastStatus(string(s.Pod.UID)))
	}
	switch {
	case now == w.lastState:
	case now.Cleared:
		w.sendState(ctx, now)
	default: // not sent; the next cleared state is sent again
		w.lastState = now
	}
}

func (w *Worker) sendState(ctx context.Context, now State) {
	select {
	case w.States <- now:
		w.lastState = now
	case <-ctx.Done():
	}
}
