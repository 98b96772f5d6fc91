package podstatus

import (
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// gone fills the status of a container without an attempt in the runtime. last
// is its last reported status, or nil.
func (b *statusBuilder) gone(c *v1.Container, last, st *v1.ContainerStatus) {
	if last != nil {
		st.RestartCount, st.LastTerminationState = last.RestartCount, last.LastTerminationState
	}
	switch {
	case last != nil && last.State.Terminated != nil:
		*st = *last.DeepCopy()
	case b.isPast(c):
		st.State.Terminated = &v1.ContainerStateTerminated{Reason: "Completed", Message: plan.InitMessage}
		if last != nil {
			st.ContainerID, st.State.Terminated.ContainerID = last.ContainerID, last.ContainerID
		}
	case last != nil && last.State.Running != nil && !b.s.Unseen:
		st.LastTerminationState = v1.ContainerState{Terminated: missingState(last)}
		st.State = b.notYet(c)
		if !b.s.Checkpoint().IsRemoving() {
			st.RestartCount++ // its exit was not observed
		}
	default:
		st.State = b.notYet(c)
		if last != nil {
			st.ContainerID, st.ImageID = last.ContainerID, last.ImageID
		}
	}
	t := st.State.Terminated
	st.Started, st.Ready = new(bool), t != nil && t.ExitCode == 0 && podspec.IsInit(b.s.Pod.Pod, c) && !podspec.Restartable(c)
}

// isPast reports whether c is an init container that succeeded, because a
// regular container was created after it.
func (b *statusBuilder) isPast(c *v1.Container) bool {
	pod := b.s.Pod.Pod
	return podspec.IsInit(pod, c) && !podspec.Restartable(c) && plan.RegularMade(pod, b.i)
}

// missingState returns the state of a container that ran and whose exit is not known.
func missingState(last *v1.ContainerStatus) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: plan.LostCode, Reason: "ContainerStatusUnknown", ContainerID: last.ContainerID, StartedAt: last.State.Running.StartedAt, Message: plan.LostMessage,
	}
}

// unknown fills the status of a container in the runtime's state "unknown".
func (b *statusBuilder) unknown(c *v1.Container, n *pleg.Container, last, st *v1.ContainerStatus) {
	over := pleg.Container{State: rt.ContainerState_CONTAINER_EXITED, ExitCode: plan.LostCode}
	switch {
	case last == nil || last.ContainerID != st.ContainerID:
		st.State.Waiting = &v1.ContainerStateWaiting{}
	case last.State.Running != nil:
		st.State.Terminated = missingState(last)
		if plan.MayRestart(b.s.Pod.Pod, c, &over) {
			st.RestartCount = max(st.RestartCount, int32(n.Attempt)+1)
		}
	default:
		st.State = last.State
	}
}
