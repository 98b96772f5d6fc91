package agent

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// verdict is how a pod ends. It is written down before what still runs is
// stopped: a stop makes exit codes of its own, and an agent may die meanwhile.
type verdict struct {
	Phase   v1.PodPhase `json:"phase"`
	Reason  string      `json:"reason,omitempty"`  // the pod's, "" where the containers tell
	Message string      `json:"message,omitempty"` // likewise
	Why     string      `json:"why"`               // for a person
}

// verdict returns how the pod ends, nil while it goes on.
func (s *situation) verdict(p *planned, i *instance) *verdict {
	if v := s.known().Verdict; v != nil {
		return v
	}
	if phase, done := workDone(s.Pod.Pod, i); done {
		return &verdict{Phase: phase, Why: endReason(s.Pod.Pod, i, phase)}
	}
	return s.overdue(p)
}

// overdue ends a pod that is active for longer than it may be (kubelet:
// activeDeadlineSeconds, reason and message).
func (s *situation) overdue(p *planned) *verdict {
	d := s.Pod.Spec.ActiveDeadlineSeconds
	if d == nil {
		return nil
	}
	// Not Before: the difference of two moments of one process does not change
	// when somebody sets the clock.
	left := time.Duration(*d)*time.Second - s.Now.Sub(s.Began)
	if left > 0 {
		p.wakeAt(s.Now.Add(left))
		return nil
	}
	return &verdict{Phase: v1.PodFailed, Reason: "DeadlineExceeded",
		Message: "Pod was active on the node longer than the specified deadline",
		Why:     fmt.Sprintf("it was active for its %d seconds", *d)}
}

// planEnd stops what still runs. Once nothing does, and so all is known of how
// each container ended, it remembers that the pod has ended.
func (s *situation) planEnd(p *planned, i *instance, v verdict) {
	uid := string(s.Pod.UID)
	if s.known().Verdict == nil && i.anyAlive() {
		p.then(action{Do: doSettle, UID: uid, Verdict: v, Reason: v.Why})
	}
	s.planRest(p, v.Why)
	if i.anyAlive() {
		return
	}
	p.then(action{Do: doEnd, UID: uid, Verdict: v, Reason: v.Why})
}

func (i *instance) anyAlive() bool {
	if i == nil {
		return false
	}
	for k := range i.Containers {
		if i.Containers[k].alive() {
			return true
		}
	}
	return false
}

func endReason(pod *v1.Pod, i *instance, phase v1.PodPhase) string {
	if phase == v1.PodSucceeded {
		return "all containers have succeeded"
	}
	for _, c := range allContainers(pod) {
		if n := i.newest(c.Name); n != nil && n.exited() && n.ExitCode != 0 {
			return fmt.Sprintf("container %s exited with %d (%s) and is not to be restarted", c.Name, n.ExitCode, n.Reason)
		}
	}
	return "a container is lost and not to be restarted"
}
