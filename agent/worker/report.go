package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

// restoreStatus takes over the pod's last status from a previous agent, unless
// it is of an instance older than the checkpoint's.
func (w *Worker) restoreStatus() {
	prev, inherited := w.Store.Previous(w.Key.String())
	if !inherited {
		prev, _ = w.Store.Pod(w.Key.String()) // of a pod that was held
	}
	if prev == nil || podstatus.WasRefused(&prev.Status) {
		return
	}
	if c := w.Known[string(prev.UID)]; c != nil && prev.Status.StartTime.Before(&c.Accepted) {
		return
	}
	w.last, w.lastUID, w.inherited = &prev.Status, string(prev.UID), inherited
}

// dropStaleStatus forgets an inherited status whose instance left nothing else:
// the previous agent died before it accepted the next instance.
func (w *Worker) dropStaleStatus(s *plan.Facts) {
	if w.inherited && w.Known[w.lastUID] == nil && s.Observed.Instances[w.lastUID] == nil {
		w.last, w.lastUID = nil, ""
	}
	w.inherited = false
}

// report stores the pod's status: of the instance that leaves while there is
// one, else of the desired one.
func (w *Worker) report(s *plan.Facts, p *plan.Plan) {
	if p.Gone {
		return
	}
	for _, uid := range s.Leaving() {
		if c := w.Known[uid]; c != nil {
			if c.Ended() != "" {
				w.publish(c.Pod, c.Pod.Status)
				return
			}
			old := *s
			old.Pod = &manifests.Pod{Pod: c.Pod, File: c.File, Digest: c.Digest}
			w.publish(c.Pod, podstatus.PodStatus(&old, &plan.Plan{}, w.Machine.Now(), w.lastStatus(uid)))
			return
		}
	}
	if s.Pod == nil {
		return
	}
	if c := s.Checkpoint(); c.Ended() != "" {
		w.publish(s.Pod.Pod, c.Pod.Status)
		return
	}
	w.publish(s.Pod.Pod, podstatus.PodStatus(s, p, w.Machine.Now(), w.lastStatus(string(s.Pod.UID))))
}

// reportUnseen reports a pod while the runtime is down: its last status, or that
// of a pod that has not started.
func (w *Worker) reportUnseen(desired *manifests.Pod) {
	if p, ok := w.Store.Pod(w.Key.String()); ok && !podstatus.WasRefused(&p.Status) && !podstatus.WasHeld(&p.Status) || desired == nil {
		return
	}
	last := w.lastStatus(string(desired.UID))
	if last != nil && !podstatus.WasHeld(last) {
		w.publish(desired.Pod, *last)
		return
	}
	s := &plan.Facts{Pod: desired, Known: w.Known, Observed: &pleg.Observed{}, Unseen: true, Now: time.Now()}
	w.publish(desired.Pod, podstatus.PodStatus(s, &plan.Plan{}, w.Machine.Now(), last))
}

func (w *Worker) publish(pod *v1.Pod, st v1.PodStatus) {
	out := *pod
	out.Status = st
	w.recordRunning(string(pod.UID), &st)
	w.last, w.lastUID = &out.Status, string(pod.UID)
	w.Store.SetPod(w.Key.String(), &out)
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
