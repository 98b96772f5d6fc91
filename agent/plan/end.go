package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// result returns how the pod ends, nil while it runs on.
func (s *Facts) result(p *Plan, i *pleg.Instance) *checkpoint.Result {
	if v := s.Checkpoint().Result; v != nil {
		return v
	}
	if phase, done := workDone(s.Pod.Pod, i); done {
		return &checkpoint.Result{Phase: phase, Why: endReason(s.Pod.Pod, i, phase)}
	}
	return s.deadlinePassed(p)
}

// deadlinePassed ends a pod that is active beyond its activeDeadlineSeconds
// (reason and message are the kubelet's).
func (s *Facts) deadlinePassed(p *Plan) *checkpoint.Result {
	d := s.Pod.Spec.ActiveDeadlineSeconds
	if d == nil {
		return nil
	}
	// Not Before: the difference of two times of one process does not change
	// when the clock is set.
	left := time.Duration(*d)*time.Second - s.Now.Sub(s.Began)
	if left > 0 {
		p.wakeAt(s.Now.Add(left))
		return nil
	}
	return &checkpoint.Result{Phase: v1.PodFailed, Reason: "DeadlineExceeded",
		Message: "Pod was active on the node longer than the specified deadline",
		Why:     fmt.Sprintf("it was active for its %d seconds", *d)}
}

// planEnd stops what still runs. Once nothing runs, so that all exit codes are
// known, it records that the pod has ended.
func (s *Facts) planEnd(p *Plan, i *pleg.Instance, v checkpoint.Result) {
	uid := string(s.Pod.UID)
	if s.Checkpoint().Result == nil && i.AnyAlive() {
		p.then(Action{Do: DoRecordResult, UID: uid, Verdict: v, Reason: v.Why})
	}
	s.planStopped(p, v.Why)
	if i.AnyAlive() {
		return
	}
	p.then(Action{Do: DoEnd, UID: uid, Verdict: v, Reason: v.Why})
}

func endReason(pod *v1.Pod, i *pleg.Instance, phase v1.PodPhase) string {
	if phase == v1.PodSucceeded {
		return "all containers have succeeded"
	}
	for _, c := range podspec.AllContainers(pod) {
		if n := i.Newest(c.Name); n != nil && n.Exited() && n.ExitCode != 0 {
			return fmt.Sprintf("container %s exited with %d (%s) and does not restart", c.Name, n.ExitCode, n.Reason)
		}
	}
	return "a container is missing and does not restart"
}
