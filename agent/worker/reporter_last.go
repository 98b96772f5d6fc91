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

// startOf returns when the desired pod started, as reported last, else now. The
// time compares with later ones of this process however the clock is set.
func (r *reporter) startOf(s *plan.Facts) time.Time {
	if s.Pod == nil || s.Known[string(s.Pod.UID)] != nil {
		return s.Now
	}
	if r.start.IsZero() {
		r.start = s.Now.Add(min(r.since(s).Sub(s.Now), 0))
	}
	return r.start
}

// since returns the reported start time of the desired instance.
func (r *reporter) since(s *plan.Facts) metav1.Time {
	if last := r.lastStatus(string(s.Pod.UID)); last != nil && last.StartTime != nil {
		return *last.StartTime
	}
	return podstatus.Seconds(s.Now)
}

// endOf returns the phase in which the desired pod had ended by the last report, or "". The end may not
// have been recorded yet, as that comes after the sandbox is stopped.
func (r *reporter) endOf(s *plan.Facts) v1.PodPhase {
	if s.Pod == nil {
		return ""
	}
	if last := r.lastStatus(string(s.Pod.UID)); last != nil && (last.Phase == v1.PodSucceeded || last.Phase == v1.PodFailed) {
		return last.Phase
	}
	return ""
}

// lastStatus returns the status of an instance that was reported last; nil: there is none.
func (r *reporter) lastStatus(uid string) *v1.PodStatus {
	if r.lastUID == uid {
		return r.last
	}
	return nil
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
		r.pod.shared.Metrics.PodRunning(c.read, c.changed)
	}
}

// forget forgets the status of an instance that is gone: a successor with the same
// uid starts without one.
func (r *reporter) forget(uid string) {
	if r.lastUID == uid {
		r.last, r.lastUID = nil, ""
	}
}
