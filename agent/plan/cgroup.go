package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
)

// Reasons for the end or the restart of a pod. Of one that has lost its cgroup: the reason and
// message of its status, and the text for a person. Then why a pod starts again that was stopped,
// and why one ends of which the runtime has nothing any more.
const (
	ReasonCgroupGone  = "CgroupGone"
	messageCgroupGone = "The pod's cgroup was removed while its containers ran"
	whyCgroupGone     = "its pod's cgroup is gone"
	whyInterrupted    = "it was stopped, and is to run again"
	whyEarlierBoot    = "it ran before the machine booted, and does not restart"
)

// newSandbox returns why the pod needs a new sandbox, "" if it does not. Without the pod's cgroup
// its containers run without its limits (the kubelet kills such a pod).
func (s *Facts) newSandbox(i *pleg.Instance) string {
	switch {
	case s.sandboxReplaced() && s.Checkpoint().IsInterrupted():
		return whyInterrupted
	case s.sandboxReplaced():
		return checkpoint.RestartRequested
	}
	why := SandboxTrouble(s.Pod.Pod, i)
	if why == "" && s.CgroupGone {
		return whyCgroupGone
	}
	return why
}

// sandboxCause returns why containers stop for a new sandbox.
func (s *Facts) sandboxCause() checkpoint.Cause {
	switch {
	case s.sandboxReplaced():
		return checkpoint.CauseRequest
	case s.CgroupGone:
		return checkpoint.CauseCgroup
	}
	return checkpoint.CausePod
}

// resultWithoutSandbox returns how a pod ends that gets no new sandbox.
func (s *Facts) resultWithoutSandbox(i *pleg.Instance, phase v1.PodPhase) checkpoint.Result {
	if s.CgroupGone && phase == v1.PodFailed {
		return checkpoint.Result{Phase: phase, Reason: ReasonCgroupGone, Message: messageCgroupGone, Why: whyCgroupGone}
	}
	if i == nil || !slices.ContainsFunc(i.Containers, wasStarted) {
		return checkpoint.Result{Phase: phase, Why: whyEarlierBoot}
	}
	return checkpoint.Result{Phase: phase, Why: endReason(s.Pod.Pod, i, phase)}
}
