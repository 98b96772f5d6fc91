package worker

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

// restoreStatus takes over what a former agent reported of the pod last, unless that
// was of an instance before the one that is known.
func (w *Worker) restoreStatus() {
	prev, inherited := w.Store.Previous(w.Key.String())
	if !inherited {
		prev, _ = w.Store.Pod(w.Key.String()) // of one that was held
	}
	if prev == nil || podstatus.WasRefused(&prev.Status) {
		return
	}
	if c := w.Known[string(prev.UID)]; c != nil && prev.Status.StartTime.Before(&c.Accepted) {
		return
	}
	w.last, w.lastUID, w.inherited = &prev.Status, string(prev.UID), inherited
}

// dropStaleStatus forgets what was inherited of an instance that left nothing else: the
// former agent died between the end of that one and the beginning of the next.
func (w *Worker) dropStaleStatus(s *plan.Facts) {
	if w.inherited && w.Known[w.lastUID] == nil && s.Observed.Instances[w.lastUID] == nil {
		w.last, w.lastUID = nil, ""
	}
	w.inherited = false
}

// report hands the pod's status to the store: of the instance that leaves
// while there is one, else of the wished one.
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

// reportUnseen reports a pod while the runtime cannot be asked: as it was
// known last, or as one that is still to come.
func (w *Worker) reportUnseen(wish *manifests.Pod) {
	if p, ok := w.Store.Pod(w.Key.String()); ok && !podstatus.WasRefused(&p.Status) && !podstatus.WasHeld(&p.Status) || wish == nil {
		return
	}
	last := w.lastStatus(string(wish.UID))
	if last != nil && !podstatus.WasHeld(last) {
		w.publish(wish.Pod, *last)
		return
	}
	s := &plan.Facts{Pod: wish, Known: w.Known, Observed: &pleg.Observed{}, Unseen: true, Now: time.Now()}
	w.publish(wish.Pod, podstatus.PodStatus(s, &plan.Plan{}, w.Machine.Now(), last))
}

func (w *Worker) publish(pod *v1.Pod, st v1.PodStatus) {
	out := *pod
	out.Status = st
	w.recordRunning(string(pod.UID), &st)
	w.last, w.lastUID = &out.Status, string(pod.UID)
	w.Store.SetPod(w.Key.String(), &out)
}
