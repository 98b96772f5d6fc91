package agent

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// inherit takes over what a former agent reported of the pod last, unless that
// was of an instance before the one that is known.
func (w *worker) inherit() {
	prev, inherited := w.store.Previous(w.key.String())
	if !inherited {
		prev, _ = w.store.Pod(w.key.String()) // of one that was held
	}
	if prev == nil || wasRefused(&prev.Status) {
		return
	}
	if c := w.known[string(prev.UID)]; c != nil && prev.Status.StartTime.Before(&c.Accepted) {
		return
	}
	w.last, w.lastUID, w.inherited = &prev.Status, string(prev.UID), inherited
}

// begins forgets what was inherited of an instance that left nothing else: the
// former agent died between the end of that one and the beginning of the next.
func (w *worker) begins(s *situation) {
	if w.inherited && w.known[w.lastUID] == nil && s.Observed.Instances[w.lastUID] == nil {
		w.last, w.lastUID = nil, ""
	}
	w.inherited = false
}

// report hands the pod's status to the store: of the instance that leaves
// while there is one, else of the wished one.
func (w *worker) report(s *situation, p *planned) {
	if p.Gone {
		return
	}
	for _, uid := range s.leaving() {
		if c := w.known[uid]; c != nil {
			if c.ended() != "" {
				w.publish(c.Pod, c.Pod.Status)
				return
			}
			old := *s
			old.Pod = &manifests.Pod{Pod: c.Pod, File: c.File, Digest: c.Digest}
			w.publish(c.Pod, podStatus(&old, &planned{}, w.machine.Now(), w.lastStatus(uid)))
			return
		}
	}
	if s.Pod == nil {
		return
	}
	if c := s.known(); c.ended() != "" {
		w.publish(s.Pod.Pod, c.Pod.Status)
		return
	}
	w.publish(s.Pod.Pod, podStatus(s, p, w.machine.Now(), w.lastStatus(string(s.Pod.UID))))
}

// reportUnseen reports a pod while the runtime cannot be asked: as it was
// known last, or as one that is still to come.
func (w *worker) reportUnseen(wish *manifests.Pod) {
	if p, ok := w.store.Pod(w.key.String()); ok && !wasRefused(&p.Status) && !wasHeld(&p.Status) || wish == nil {
		return
	}
	last := w.lastStatus(string(wish.UID))
	if last != nil && !wasHeld(last) {
		w.publish(wish.Pod, *last)
		return
	}
	s := &situation{Pod: wish, Known: w.known, Observed: &observed{}, Unseen: true, Now: time.Now()}
	w.publish(wish.Pod, podStatus(s, &planned{}, w.machine.Now(), last))
}

func (w *worker) publish(pod *v1.Pod, st v1.PodStatus) {
	out := *pod
	out.Status = st
	w.came(string(pod.UID), &st)
	w.last, w.lastUID = &out.Status, string(pod.UID)
	w.store.SetPod(w.key.String(), &out)
}

// isReady tells whether a pod is as far as those want that start after it:
// ready, or done.
func isReady(s *v1.PodStatus) bool {
	if s == nil {
		return false
	}
	return s.Phase == v1.PodSucceeded || slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}
