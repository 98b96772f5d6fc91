// Package podstatus derives the API status of a pod from what the runtime has of it.
package podstatus

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// PodStatus is Report without the public part of the messages.
func PodStatus(s *plan.Facts, p *plan.Plan, n *podspec.Host, last *v1.PodStatus) v1.PodStatus {
	st, _ := Report(s, p, n, last)
	return st
}

// Report returns the status of the desired pod, derived from what the runtime has, and the public
// part of its messages. last is the last reported status, or nil; it provides times and what the
// runtime no longer has.
func Report(s *plan.Facts, p *plan.Plan, n *podspec.Host, last *v1.PodStatus) (v1.PodStatus, message.Book) {
	if last == nil {
		last = &v1.PodStatus{}
	}
	pod, i := s.Pod.Pod, s.Instance()
	st := v1.PodStatus{
		ObservedGeneration: pod.Generation, QOSClass: podspec.QosClass(pod),
		StartTime: last.StartTime, PodIP: last.PodIP, PodIPs: last.PodIPs,
	}
	if c := s.Checkpoint(); st.StartTime == nil && !c.Accepted.IsZero() {
		st.StartTime = new(Seconds(c.Accepted.Time)) // the last status is missing
	}
	if st.StartTime == nil {
		st.StartTime = &metav1.Time{Time: s.Now.Truncate(time.Second)}
	}
	for _, ip := range n.HostIPs {
		st.HostIPs = append(st.HostIPs, v1.HostIP{IP: ip})
	}
	if len(n.HostIPs) > 0 {
		st.HostIP = n.HostIPs[0]
	}
	if ips := SandboxIPs(pod, i, n); len(ips) > 0 {
		st.PodIP, st.PodIPs = ips[0], nil
		for _, ip := range ips {
			st.PodIPs = append(st.PodIPs, v1.PodIP{IP: ip})
		}
	}
	b := statusBuilder{s: s, p: p, i: i, public: plan.EndTexts()}
	st.InitContainerStatuses = b.list(pod.Spec.InitContainers, last.InitContainerStatuses)
	st.ContainerStatuses = b.list(pod.Spec.Containers, last.ContainerStatuses)
	slices.SortFunc(st.ContainerStatuses, func(x, y v1.ContainerStatus) int { return cmp.Compare(x.Name, y.Name) })
	st.Phase = phase(pod, i, &st)
	if v := s.Checkpoint().Result; v != nil {
		st.Reason, st.Message = v.Reason, v.Message
		if st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed { // a stop changes exit codes
			st.Phase = v.Phase
		}
	}
	if c := s.Checkpoint(); s.Halted.Reason != "" && c.Result == nil && c.Ended() == "" {
		st.Reason, st.Message = s.Halted.Reason, b.public.Note(s.Halted.Message)
		if !i.AnyAlive() {
			st.Phase = v1.PodPending
			if s.Halted.Terminated {
				st.Phase = v1.PodFailed
			}
		}
	}
	st.Conditions = conditions(s, &st, last.Conditions, b.public)
	return st, b.public
}

// SandboxIPs returns the addresses of the pod, primary first, as its variables have them.
func SandboxIPs(pod *v1.Pod, i *pleg.Instance, n *podspec.Host) []string {
	b := i.Sandbox()
	switch {
	case b == nil || !b.Ready:
		return nil
	case pod.Spec.HostNetwork:
		return n.HostIPs
	}
	return podspec.PrimaryFirst(b.IPs, n)
}

// statusBuilder builds the statuses of a pod's containers.
type statusBuilder struct {
	s *plan.Facts
	p *plan.Plan
	i *pleg.Instance // nil: nothing in the runtime

	public message.Book // the public part of the messages
}

func (b *statusBuilder) list(containers []v1.Container, last []v1.ContainerStatus) []v1.ContainerStatus {
	var out []v1.ContainerStatus
	for k := range containers {
		c := &containers[k]
		var before *v1.ContainerStatus
		if at := slices.IndexFunc(last, func(x v1.ContainerStatus) bool { return x.Name == c.Name }); at >= 0 {
			before = &last[at]
		}
		out = append(out, b.container(c, before))
	}
	return out
}

func (b *statusBuilder) container(c *v1.Container, last *v1.ContainerStatus) v1.ContainerStatus {
	st := v1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(bool), VolumeMounts: mountsOf(c, b.i.Newest(c.Name))}
	n := b.i.Newest(c.Name)
	switch {
	case n != nil:
		b.observed(c, n, last, &st)
	default:
		b.gone(c, last, &st)
	}
	if text := b.public.Note(b.s.HangText(c.Name)); text != "" && st.State.Waiting != nil && st.State.Waiting.Message == "" {
		st.State.Waiting.Message = text
	}
	w, ok := b.p.Waiting[c.Name]
	if f := b.s.Failures[c.Name]; !ok && f.Reason != "" {
		w, ok = f.Waiting, true
	}
	if n != nil && n.Exited() && !plan.MayRestart(b.s.Pod.Pod, c, n) {
		ok = false // it has ended and does not restart; a failed start no longer matters
	}
	if ok && st.State.Running == nil {
		if st.State.Terminated != nil {
			st.LastTerminationState = st.State
		}
		st.State = v1.ContainerState{Waiting: b.waiting(w)}
		st.Ready = false
	}
	return st
}

func (b *statusBuilder) waiting(w plan.Waiting) *v1.ContainerStateWaiting {
	return &v1.ContainerStateWaiting{Reason: w.Reason, Message: b.public.Note(w.Message)}
}

// notYet returns the state of a container that has no attempt yet.
func (b *statusBuilder) notYet(c *v1.Container) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: b.s.PendingReason()}}
}

// observed fills a status from the newest attempt that the runtime has.
func (b *statusBuilder) observed(c *v1.Container, n *pleg.Container, last *v1.ContainerStatus, st *v1.ContainerStatus) {
	st.ContainerID = containerID(b.s, n)
	st.RestartCount = int32(n.Attempt)
	if last != nil {
		st.RestartCount = max(st.RestartCount, last.RestartCount)
	}
	st.Image, st.ImageID = cmp.Or(n.Image, c.Image), n.ImageRef
	st.Resources, st.AllocatedResources = ResourcesOf(c, n)
	if u := n.Status.GetUser().GetLinux(); u != nil {
		st.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: u.Uid, GID: u.Gid, SupplementalGroups: u.SupplementalGroups}}
	}
	switch {
	case b.s.Hooking(n):
		st.State.Waiting = b.waiting(b.s.HookWait(n))
	case n.Running():
		st.State.Running = &v1.ContainerStateRunning{StartedAt: Seconds(n.Started)}
		*st.Started, st.Ready = b.s.Health(c, n)
		st.Ready = st.Ready && !n.Outdated                                                 // it restarts as its next version
		st.Ready = st.Ready && (podspec.Restartable(c) || !podspec.IsInit(b.s.Pod.Pod, c)) // an init container is ready once it has succeeded
	case n.State == rt.ContainerState_CONTAINER_CREATED:
		st.State.Waiting = &v1.ContainerStateWaiting{}
	case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
		b.unknown(c, n, last, st)
	default:
		st.State.Terminated = Terminated(b.s, c, n)
		st.Ready = podspec.IsInit(b.s.Pod.Pod, c) && !podspec.Restartable(c) && plan.Succeeded(n)
	}
	st.LastTerminationState = b.lastEnd(c, n, last, st.ContainerID)
	keepOOM(st.State.Terminated, last)
	keepOOM(st.LastTerminationState.Terminated, last)
}

// lastEnd returns how the attempt before n ended: according to the runtime, or otherwise the last
// status.
func (b *statusBuilder) lastEnd(c *v1.Container, n *pleg.Container, last *v1.ContainerStatus, id string) v1.ContainerState {
	older := b.i.Before(n)
	switch {
	case older != nil:
		return v1.ContainerState{Terminated: Terminated(b.s, c, older)}
	case last == nil:
		return v1.ContainerState{}
	case last.ContainerID == id:
	case last.State.Terminated != nil:
		return last.State
	case last.State.Running != nil:
		return v1.ContainerState{Terminated: missingState(last)}
	}
	return last.LastTerminationState
}

// containerID returns "containerd://<id>".
func containerID(s *plan.Facts, n *pleg.Container) string { return s.Runtime + "://" + n.ID }

// Seconds truncates a time to the API's precision.
func Seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{Time: time.Unix(0, 0).UTC()}
	}
	return metav1.Time{Time: t.Truncate(time.Second)}
}

// imageMounted returns the image that attempt n has at a path; "": none, or the runtime does not
// report it (kubelet: with the feature ImageVolumeWithDigest).
func imageMounted(n *pleg.Container, path string) string {
	if n == nil {
		return ""
	}
	for _, x := range n.Status.GetMounts() {
		if x.ContainerPath == path {
			return x.Image.GetImage()
		}
	}
	return ""
}

// mountsOf returns the container's mounts, as attempt n has them; n may be nil.
func mountsOf(c *v1.Container, n *pleg.Container) []v1.VolumeMountStatus {
	var out []v1.VolumeMountStatus
	for _, m := range c.VolumeMounts {
		st := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			st.RecursiveReadOnly = new(v1.RecursiveReadOnlyDisabled)
			if n != nil && slices.ContainsFunc(n.Status.GetMounts(), func(x *rt.Mount) bool {
				return x.ContainerPath == podspec.Absolute(m.MountPath) && x.RecursiveReadOnly
			}) {
				st.RecursiveReadOnly = new(v1.RecursiveReadOnlyEnabled)
			}
		}
		if ref := imageMounted(n, podspec.Absolute(m.MountPath)); ref != "" {
			st.VolumeStatus = &v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: ref}}
		}
		out = append(out, st)
	}
	return out
}
