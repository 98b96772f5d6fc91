package agent

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podStatus returns what is reported of the wanted pod: what the runtime has,
// in the API's terms. last is what was reported before, nil if nothing was;
// times and what the runtime has forgotten are taken from it.
func podStatus(s *situation, p *planned, n *node, last *v1.PodStatus) v1.PodStatus {
	if last == nil {
		last = &v1.PodStatus{}
	}
	pod, i := s.Pod.Pod, s.instance()
	st := v1.PodStatus{
		ObservedGeneration: pod.Generation, QOSClass: qosClass(pod),
		StartTime: last.StartTime, PodIP: last.PodIP, PodIPs: last.PodIPs,
	}
	if c := s.known(); st.StartTime == nil && !c.Accepted.IsZero() {
		st.StartTime = new(seconds(c.Accepted.Time)) // no former status is left
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
	if ips := sandboxIPs(pod, i, n); len(ips) > 0 {
		st.PodIP, st.PodIPs = ips[0], nil
		for _, ip := range ips {
			st.PodIPs = append(st.PodIPs, v1.PodIP{IP: ip})
		}
	}
	b := statusBuilder{s: s, p: p, i: i}
	st.InitContainerStatuses = b.list(pod.Spec.InitContainers, last.InitContainerStatuses)
	st.ContainerStatuses = b.list(pod.Spec.Containers, last.ContainerStatuses)
	slices.SortFunc(st.ContainerStatuses, func(x, y v1.ContainerStatus) int { return cmp.Compare(x.Name, y.Name) })
	st.Phase = phase(pod, i, &st)
	if v := s.known().Verdict; v != nil {
		st.Reason, st.Message = v.Reason, v.Message
	}
	st.Conditions = conditions(s, &st, last.Conditions)
	return st
}

// sandboxIPs returns the addresses under which the pod is reached, primary first.
func sandboxIPs(pod *v1.Pod, i *instance, n *node) []string {
	b := i.sandbox()
	switch {
	case b == nil || !b.Ready:
		return nil
	case pod.Spec.HostNetwork:
		return n.HostIPs
	}
	return b.IPs
}

// statusBuilder makes the statuses of a pod's containers.
type statusBuilder struct {
	s *situation
	p *planned
	i *instance // nil: nothing in the runtime
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
	st := v1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(bool), VolumeMounts: mountsOf(c, b.i.newest(c.Name))}
	n := b.i.newest(c.Name)
	switch {
	case n != nil:
		b.observed(c, n, last, &st)
	default:
		b.gone(c, last, &st)
	}
	w, ok := b.p.Waiting[c.Name]
	if f, failed := b.s.Failures[c.Name]; !ok && failed {
		w, ok = f.waiting, true
	}
	if n != nil && n.exited() && !mayRestart(b.s.Pod.Pod, c, n) {
		ok = false // it is over, whatever went wrong with its start
	}
	if ok && st.State.Running == nil {
		if st.State.Terminated != nil {
			st.LastTerminationState = st.State
		}
		st.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}}
		st.Ready = false
	}
	return st
}

// notYet is the state of a container that has no attempt yet.
func (b *statusBuilder) notYet(c *v1.Container) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: b.s.notYet()}}
}

// observed fills a status from the newest attempt that the runtime has.
func (b *statusBuilder) observed(c *v1.Container, n *container, last *v1.ContainerStatus, st *v1.ContainerStatus) {
	st.ContainerID = containerID(b.s, n)
	st.RestartCount = int32(n.Attempt)
	if last != nil {
		st.RestartCount = max(st.RestartCount, last.RestartCount)
	}
	st.Image, st.ImageID = cmp.Or(n.Image, c.Image), n.ImageRef
	st.Resources, st.AllocatedResources = resourcesOf(c, n)
	if u := n.status.GetUser().GetLinux(); u != nil {
		st.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: u.Uid, GID: u.Gid, SupplementalGroups: u.SupplementalGroups}}
	}
	switch {
	case b.s.hooking(n):
		w := b.s.hookWait(n)
		st.State.Waiting = &v1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
	case n.running():
		st.State.Running = &v1.ContainerStateRunning{StartedAt: seconds(n.Started)}
		*st.Started, st.Ready = b.s.health(c, n)
		st.Ready = st.Ready && (restarts(c) || !isInit(b.s.Pod.Pod, c)) // one that is to end is ready when it has
	case n.State == rt.ContainerState_CONTAINER_CREATED:
		st.State.Waiting = &v1.ContainerStateWaiting{}
	case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
		b.unknown(c, n, last, st)
	default:
		st.State.Terminated = terminated(b.s, c, n)
		st.Ready = isInit(b.s.Pod.Pod, c) && !restarts(c) && succeeded(n)
	}
	st.LastTerminationState = b.lastEnd(c, n, last, st.ContainerID)
}

// lastEnd returns how the attempt before n ended: what the runtime says, else
// what was reported.
func (b *statusBuilder) lastEnd(c *v1.Container, n *container, last *v1.ContainerStatus, id string) v1.ContainerState {
	older := b.i.before(n)
	switch {
	case older != nil:
		return v1.ContainerState{Terminated: terminated(b.s, c, older)}
	case last == nil:
		return v1.ContainerState{}
	case last.ContainerID == id:
	case last.State.Terminated != nil:
		return last.State
	case last.State.Running != nil:
		return v1.ContainerState{Terminated: lostState(last)}
	}
	return last.LastTerminationState
}

// before returns the attempt before n, if the runtime still has it and it exited.
func (i *instance) before(n *container) *container {
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Name == n.Name && c.ID != n.ID && c.exited() && c.Attempt < n.Attempt {
			return c
		}
	}
	return nil
}

// containerID returns "containerd://<id>".
func containerID(s *situation, n *container) string { return s.Runtime + "://" + n.ID }

// seconds cuts a time to what the API carries.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{Time: time.Unix(0, 0).UTC()}
	}
	return metav1.Time{Time: t.Truncate(time.Second)}
}

func isInit(pod *v1.Pod, c *v1.Container) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(x v1.Container) bool { return x.Name == c.Name })
}

// mountsOf returns what the container mounts, and as what n has it, if there is one.
func mountsOf(c *v1.Container, n *container) []v1.VolumeMountStatus {
	var out []v1.VolumeMountStatus
	for _, m := range c.VolumeMounts {
		st := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			st.RecursiveReadOnly = new(v1.RecursiveReadOnlyDisabled)
			if n != nil && slices.ContainsFunc(n.status.GetMounts(), func(x *rt.Mount) bool {
				return x.ContainerPath == absolute(m.MountPath) && x.RecursiveReadOnly
			}) {
				st.RecursiveReadOnly = new(v1.RecursiveReadOnlyEnabled)
			}
		}
		out = append(out, st)
	}
	return out
}
