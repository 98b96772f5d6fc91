package agent

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	lostCode    = 137
	lostMessage = "The container could not be located when the pod was looked at"
	initMessage = "Nobody knows how the init container ended; as the pod was initialized after it, it must have succeeded"
)

// missing finds the containers whose last attempt somebody removed from the
// runtime, and returns which attempt comes next. Where an older one is still
// there, it says nothing any more of the container: that is marked as lost.
func (s *situation) missing(last *v1.PodStatus) map[string]uint32 {
	next, i := map[string]uint32{}, s.instance()
	if last == nil {
		return next
	}
	for _, list := range [][]v1.ContainerStatus{last.InitContainerStatuses, last.ContainerStatuses} {
		for k := range list {
			c := &list[k]
			n := i.newest(c.Name)
			if n != nil && (!n.exited() || n.Attempt >= uint32(c.RestartCount) || strings.HasSuffix(c.ContainerID, "://"+n.ID)) {
				continue
			}
			if n != nil {
				i.lose(c.Name)
			}
			if next[c.Name] = uint32(c.RestartCount); c.ContainerID != "" {
				next[c.Name]++
			}
		}
	}
	return next
}

func (i *instance) lose(name string) {
	if i.Lost == nil {
		i.Lost = map[string]bool{}
	}
	i.Lost[name] = true
}

// gone fills the status of a container of which the runtime has no attempt.
// last is what was reported of it before, nil if nothing was.
func (b *statusBuilder) gone(c *v1.Container, last, st *v1.ContainerStatus) {
	if last != nil {
		st.RestartCount, st.LastTerminationState = last.RestartCount, last.LastTerminationState
	}
	switch {
	case last != nil && last.State.Terminated != nil:
		*st = *last.DeepCopy()
	case b.isPast(c):
		st.State.Terminated = &v1.ContainerStateTerminated{Reason: "Completed", Message: initMessage}
		if last != nil {
			st.ContainerID, st.State.Terminated.ContainerID = last.ContainerID, last.ContainerID
		}
	case last != nil && last.State.Running != nil && !b.s.Unseen:
		st.LastTerminationState = v1.ContainerState{Terminated: lostState(last)}
		if st.State = b.notYet(c); !b.s.known().retired() {
			st.RestartCount++ // nothing is to be seen of it, but it will have ended
		}
	default:
		if st.State = b.notYet(c); last != nil {
			st.ContainerID, st.ImageID = last.ContainerID, last.ImageID
		}
	}
	t := st.State.Terminated
	st.Started, st.Ready = new(bool), t != nil && t.ExitCode == 0 && isInit(b.s.Pod.Pod, c) && !restarts(c)
}

// isPast reports whether c is an init container that must have ended well, for
// a regular container was made after it.
func (b *statusBuilder) isPast(c *v1.Container) bool {
	pod := b.s.Pod.Pod
	return isInit(pod, c) && !restarts(c) && regularMade(pod, b.i)
}

// lostState says of a container that ran that nobody knows how it ended.
func lostState(last *v1.ContainerStatus) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: lostCode, Reason: "ContainerStatusUnknown", ContainerID: last.ContainerID, StartedAt: last.State.Running.StartedAt, Message: lostMessage,
	}
}

// unknown fills the status of a container that the runtime lost track of.
func (b *statusBuilder) unknown(c *v1.Container, n *container, last, st *v1.ContainerStatus) {
	over := container{State: rt.ContainerState_CONTAINER_EXITED, ExitCode: lostCode}
	switch {
	case last == nil || last.ContainerID != st.ContainerID:
		st.State.Waiting = &v1.ContainerStateWaiting{}
	case last.State.Running != nil:
		if st.State.Terminated = lostState(last); mayRestart(b.s.Pod.Pod, c, &over) {
			st.RestartCount = max(st.RestartCount, int32(n.Attempt)+1)
		}
	default:
		st.State = last.State
	}
}
