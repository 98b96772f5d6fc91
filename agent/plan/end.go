package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// result returns how the pod ends, nil while it runs on.
func (s *Facts) result(p *Plan, i *pleg.Instance) *checkpoint.Result {
	if v := s.Checkpoint().Result; v != nil {
		return v
	}
	if v := s.limitReached(i); v != nil {
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
	if s.Pod.Spec.ActiveDeadlineSeconds == nil {
		return nil
	}
	deadline := time.Duration(*s.Pod.Spec.ActiveDeadlineSeconds) * time.Second
	active, counts := s.active()
	if left := deadline - active; left > 0 {
		if !counts && s.Mark.Counts() || active-s.savedActive() >= saveActiveEvery(deadline) {
			p.then(Action{Do: DoSaveActive, UID: string(s.Pod.UID), Active: active, Reason: "the pod has a deadline"})
		}
		p.wakeAt(s.Now.Add(min(left, saveActiveEvery(deadline))))
		return nil
	}
	return &checkpoint.Result{Phase: v1.PodFailed, Reason: "DeadlineExceeded",
		Message: messageDeadline,
		Why:     fmt.Sprintf("it was active for its %d seconds", deadline/time.Second)}
}

const messageDeadline = "Pod was active on the node longer than the specified deadline"

// EndTexts returns the fixed texts in the statuses of pods and containers that have ended. They
// must not change: checkpoints and statuses of previous agents have them.
func EndTexts() message.Book {
	b := message.Book{}
	for _, t := range []message.Text{message.Fixed(messageDeadline), message.Fixed(messageBackoffLimit), message.Fixed(messageCgroupGone),
		message.Fixed(LostMessage), message.Fixed(InitMessage)} {
		b.Note(t)
	}
	return b
}

// saveActiveEvery returns how much of its active time a pod may lose in a crash of the machine.
func saveActiveEvery(deadline time.Duration) time.Duration {
	return min(max(deadline/10, 10*time.Second), 10*time.Minute)
}

// active returns how long the pod has been active, and whether that is counted from a mark of this
// boot. The wall clock is used only for a pod that runs and whose checkpoint is lost.
func (s *Facts) active() (active time.Duration, counts bool) {
	if c := s.Checkpoint(); !c.Accepted.IsZero() {
		return c.ActiveFor(s.Mark)
	}
	return s.Now.Sub(s.Since), true // its checkpoint is made next
}

// savedActive returns the part of that which survives a crash of the machine.
func (s *Facts) savedActive() time.Duration {
	if a := s.Checkpoint().Active; a != nil {
		return a.Before
	}
	return 0
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
	end := Action{Do: DoEnd, UID: uid, Verdict: v, Reason: v.Why}
	if s.Failures[end.Key()].Reason == "" { // otherwise that was done before the end failed
		s.planRelease(p, i, v.Why)
	}
	p.then(end)
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
