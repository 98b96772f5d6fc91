package agent

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// end remembers how the pod ended, with the status it has then. Nothing of it
// runs any more, so its cgroup goes before that is said.
func (w *worker) end(ctx context.Context, s *situation, a action) error {
	if err := w.cgroups.destroy(ctx, a.UID); err != nil {
		return err
	}
	if s.known().Verdict == nil {
		w.recordVerdict(s, a.Verdict)
	}
	last := w.lastStatus(a.UID)
	st := podStatus(s, &planned{}, w.machine.Now(), last)
	endStatus(s, &st, a.Verdict, last)
	return w.remember(w.checkpointOf(s, a.UID).end(st))
}

// since returns when the wanted instance began, as was reported.
func (w *worker) since(s *situation) metav1.Time {
	if last := w.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
		return *last.StartTime
	}
	return seconds(s.Now)
}

func (w *worker) lastStatus(uid string) *v1.PodStatus {
	if w.lastUID == uid {
		return w.last
	}
	return nil
}

// beganAt returns since when the wished pod is active: with a deadline, whose
// clock goes on where a former agent's was. What it returns can be compared
// with later moments of this process, whatever becomes of the machine's clock.
func (w *worker) beganAt(s *situation) time.Time {
	if s.Pod == nil || s.Pod.Spec.ActiveDeadlineSeconds == nil || len(s.leaving()) > 0 {
		return time.Time{}
	}
	if w.began.IsZero() {
		w.began = s.Now
		at := s.known().Accepted.Time
		if last := w.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
			at = last.StartTime.Time
		}
		if !at.IsZero() {
			w.began = s.Now.Add(min(at.Sub(s.Now), 0))
		}
	}
	return w.began
}

// endStatus makes a pod's last status say how it ended.
func endStatus(s *situation, st *v1.PodStatus, v verdict, last *v1.PodStatus) {
	st.Phase, st.Reason, st.Message = v.Phase, v.Reason, v.Message
	var before []v1.PodCondition
	if last != nil {
		before = slices.Clone(last.Conditions)
	}
	st.Conditions = conditions(s, st, before)
}
