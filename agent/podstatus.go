package agent

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
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
	case last != nil && last.ContainerID != "":
		st = *last.DeepCopy() // the runtime has forgotten what we know
		if st.State.Running != nil {
			st.LastTerminationState = v1.ContainerState{Terminated: lostState(last)}
			st.State = b.notYet(c)
		}
		st.Ready, st.Started = false, new(bool)
	default:
		st.State = b.notYet(c)
	}
	w, ok := b.p.Waiting[c.Name]
	if f, failed := b.s.Failures[c.Name]; !ok && failed {
		w, ok = f.waiting, true
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

// lostState says of a container that ran and is gone that nobody knows how it ended.
func lostState(last *v1.ContainerStatus) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", ContainerID: last.ContainerID, StartedAt: last.State.Running.StartedAt,
		Message: "The container could not be located when the pod was looked at",
	}
}

// notYet is the state of a container that has no attempt yet.
func (b *statusBuilder) notYet(c *v1.Container) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: b.s.notYet()}}
}

// observed fills a status from the newest attempt that the runtime has.
func (b *statusBuilder) observed(c *v1.Container, n *container, last *v1.ContainerStatus, st *v1.ContainerStatus) {
	st.ContainerID = containerID(b.s, n)
	st.RestartCount = int32(n.Attempt)
	st.Image, st.ImageID = cmp.Or(n.Image, c.Image), n.ImageRef
	st.Resources, st.AllocatedResources = resourcesOf(c)
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
	case n.State == rt.ContainerState_CONTAINER_CREATED:
		st.State.Waiting = &v1.ContainerStateWaiting{}
	default:
		st.State.Terminated = terminated(b.s, c, n, len(b.s.Pod.Spec.Containers))
		st.Ready = isInit(b.s.Pod.Pod, c) && !restarts(c) && succeeded(n)
	}
	if older := b.i.before(n); older != nil {
		st.LastTerminationState.Terminated = terminated(b.s, c, older, len(b.s.Pod.Spec.Containers))
	} else if last != nil && last.RestartCount == st.RestartCount {
		st.LastTerminationState = last.LastTerminationState
	} else if last != nil && last.State.Terminated != nil && last.ContainerID != st.ContainerID {
		st.LastTerminationState = last.State
	}
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

// messageLimit is what the termination messages of one pod may hold together, in bytes.
const messageLimit = 12288

// terminated describes an attempt that has ended.
func terminated(s *situation, c *v1.Container, n *container, containers int) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{
		ExitCode: n.ExitCode, Reason: n.Reason, ContainerID: containerID(s, n),
		StartedAt: seconds(n.Started), FinishedAt: seconds(n.Finished),
	}
	text := ""
	if n.TerminationLog != "" {
		text = volume.TerminationMessage(n.TerminationLog)
	}
	switch {
	case n.Message == "":
		t.Message = text
	case text == "":
		t.Message = n.Message
	default:
		t.Message = n.Message + ": " + text
	}
	if t.Message == "" && n.Condemned != nil {
		t.Message = n.Condemned.Text
	}
	t.Message = strings.ToValidUTF8(t.Message[:min(len(t.Message), messageLimit/containers)], "")
	return t
}

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

func resourcesOf(c *v1.Container) (*v1.ResourceRequirements, v1.ResourceList) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		return nil, nil
	}
	return &v1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests}, c.Resources.Requests
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
