package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/plan"
	"monopod/agent/podstatus"
)

// end remembers how the pod ended, with the status it has then. Nothing of it
// runs any more, so its cgroup goes before that is said.
func (w *Worker) end(ctx context.Context, s *plan.Facts, a plan.Action) error {
	if err := w.Cgroups.Destroy(ctx, a.UID); err != nil {
		return err
	}
	if s.Checkpoint().Result == nil {
		w.recordVerdict(s, a.Verdict)
	}
	last := w.lastStatus(a.UID)
	st := podstatus.PodStatus(s, &plan.Plan{}, w.Machine.Now(), last)
	podstatus.EndStatus(s, &st, a.Verdict, last)
	return w.remember(w.checkpointOf(s, a.UID).WithEnd(st))
}

// since returns when the wanted instance began, as was reported.
func (w *Worker) since(s *plan.Facts) metav1.Time {
	if last := w.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
		return *last.StartTime
	}
	return podstatus.Seconds(s.Now)
}

func (w *Worker) lastStatus(uid string) *v1.PodStatus {
	if w.lastUID == uid {
		return w.last
	}
	return nil
}

// beganAt returns since when the wished pod is active: with a deadline, whose
// clock goes on where a former agent's was. What it returns can be compared
// with later moments of this process, whatever becomes of the machine's clock.
func (w *Worker) beganAt(s *plan.Facts) time.Time {
	if s.Pod == nil || s.Pod.Spec.ActiveDeadlineSeconds == nil || len(s.Leaving()) > 0 {
		return time.Time{}
	}
	if w.began.IsZero() {
		w.began = s.Now
		at := s.Checkpoint().Accepted.Time
		if last := w.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
			at = last.StartTime.Time
		}
		if !at.IsZero() {
			w.began = s.Now.Add(min(at.Sub(s.Now), 0))
		}
	}
	return w.began
}
