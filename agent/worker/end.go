package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/plan"
	"monopod/agent/podstatus"
)

// end records how the pod ended, with its final status. Nothing of it runs, so
// its cgroup is removed first.
func (w *Worker) end(ctx context.Context, s *plan.Facts, a plan.Action) error {
	if err := w.Cgroups.Destroy(ctx, a.UID); err != nil {
		return err
	}
	if s.Checkpoint().Result == nil {
		w.recordResult(s, a.Verdict)
	}
	last := w.lastStatus(a.UID)
	st := podstatus.PodStatus(s, &plan.Plan{}, w.Machine.Now(), last)
	podstatus.EndStatus(s, &st, a.Verdict, last)
	return w.remember(w.checkpointOf(s, a.UID).WithEnd(st))
}

// since returns the reported start time of the desired instance.
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

// beganAt returns when a desired pod with a deadline became active, under this
// agent or a previous one; zero for others. The time can be compared with later
// times of this process even if the machine's clock is set.
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
