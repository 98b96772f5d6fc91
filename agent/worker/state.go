package worker

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

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

// state tells the sync loop when the pod takes less of the node than before.
func (r *reporter) state(ctx context.Context, s *plan.Facts) {
	now := State{Key: r.Key, Generation: r.current.Generation, Cleared: len(s.Leaving()) == 0}
	if s.Pod != nil {
		now.UID = s.Pod.UID
		now.Ended = now.Cleared && s.Checkpoint().Ended() != ""
		now.Ready = now.Cleared && podstatus.IsReady(r.lastStatus(string(s.Pod.UID)))
	}
	switch {
	case now == r.sent:
	case now.Cleared:
		r.send(ctx, now)
	default: // not sent; the next cleared state is sent again
		r.sent = now
	}
}

func (r *reporter) send(ctx context.Context, now State) {
	select {
	case r.States <- now:
		r.sent = now
	case <-ctx.Done():
	}
}
