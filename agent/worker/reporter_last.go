package worker

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
)

// since returns the reported start time of the desired instance.
func (r *reporter) since(s *plan.Facts) metav1.Time {
	if last := r.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
		return *last.StartTime
	}
	return podstatus.Seconds(s.Now)
}

func (r *reporter) lastStatus(uid string) *v1.PodStatus {
	if r.lastUID == uid {
		return r.last
	}
	return nil
}

// beganAt returns when a desired pod with a deadline became active, under this
// agent or a previous one; zero for others. The time can be compared with later
// times of this process even if the machine's clock is set.
func (r *reporter) beganAt(s *plan.Facts) time.Time {
	if s.Pod == nil || s.Pod.Spec.ActiveDeadlineSeconds == nil || len(s.Leaving()) > 0 {
		return time.Time{}
	}
	if r.began.IsZero() {
		r.began = s.Now
		at := s.Checkpoint().Accepted.Time
		if last := r.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
			at = last.StartTime.Time
		}
		if !at.IsZero() {
			r.began = s.Now.Add(min(at.Sub(s.Now), 0))
		}
	}
	return r.began
}

// reported returns what was reported last of a container, by this agent or a
// previous one.
func (r *reporter) reported(uid string, n *pleg.Container) (started, ready bool) {
	last := r.lastStatus(uid)
	if last == nil {
		return false, false
	}
	for _, list := range [][]v1.ContainerStatus{last.InitContainerStatuses, last.ContainerStatuses} {
		for k := range list {
			if c := &list[k]; c.Name == n.Name && strings.HasSuffix(c.ContainerID, "//"+n.ID) && c.State.Running != nil {
				return c.Started != nil && *c.Started, c.Ready
			}
		}
	}
	return false, false
}

// pendingStart is a pod that was accepted and has not run yet.
type pendingStart struct {
	uid           string
	read, changed time.Time // zero: not known
}

// recordRunning counts a pod that runs for the first time.
func (r *reporter) recordRunning(uid string, st *v1.PodStatus) {
	c := r.starting
	if c == nil || st.Phase == v1.PodPending {
		return
	}
	r.starting = nil
	if c.uid == uid && st.Phase == v1.PodRunning {
		r.Metrics.PodRunning(c.read, c.changed)
	}
}

// forget forgets the status of an instance that is gone: a successor with the same
// uid starts without one.
func (r *reporter) forget(uid string) {
	if r.lastUID == uid {
		r.last, r.lastUID = nil, ""
	}
}
