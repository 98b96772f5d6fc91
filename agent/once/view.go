package once

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
	"monopod/manifests/defaults"
)

// view is a desired pod and its reported status.
type view struct {
	pod      *v1.Pod
	reported *v1.Pod       // nil: not yet
	status   *v1.PodStatus // of that
}

// runs reports whether any container of the pod runs.
func (v *view) runs() bool {
	return slices.ContainsFunc(v.containers(), func(s v1.ContainerStatus) bool { return s.State.Running != nil })
}

// refused reports whether the pod waits because the node cannot take it now.
func (v *view) refused() bool {
	return v.status != nil && status.WasRefused(v.status)
}

// ended reports whether the pod has ended for good.
func (v *view) ended() bool {
	return v.status != nil && !v.refused() && (v.status.Phase == v1.PodSucceeded || v.status.Phase == v1.PodFailed)
}

func (v *view) failed() bool { return v.ended() && v.status.Phase == v1.PodFailed }

// ready reports whether the pod is ready, or done.
func (v *view) ready() bool {
	if v.status == nil {
		return false
	}
	return v.status.Phase == v1.PodSucceeded || slices.ContainsFunc(v.status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// lacksSandbox reports whether the status says that the pod has no sandbox.
func (v *view) lacksSandbox() bool {
	return v.status != nil && slices.ContainsFunc(v.status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReadyToStartContainers && c.Status == v1.ConditionFalse
	})
}

// held reports whether the pod waits for others before it starts.
func (v *view) held() bool {
	for _, c := range v.containers() {
		if w := c.State.Waiting; w != nil && w.Reason == "WaitingForPods" {
			return true
		}
	}
	return false
}

// containers returns the statuses of all containers, in the order of the
// manifest.
func (v *view) containers() []v1.ContainerStatus {
	if v.status == nil {
		return nil
	}
	var out []v1.ContainerStatus
	for _, c := range slices.Concat(v.pod.Spec.InitContainers, v.pod.Spec.Containers) {
		if s, ok := v.container(c.Name); ok {
			out = append(out, s)
		}
	}
	return out
}

func (v *view) container(name string) (v1.ContainerStatus, bool) {
	if v.status != nil {
		for _, s := range slices.Concat(v.status.InitContainerStatuses, v.status.ContainerStatuses) {
			if s.Name == name {
				return s, true
			}
		}
	}
	return v1.ContainerStatus{}, false
}

// isJob reports whether the pod ends by itself: none of its regular containers is
// restarted after every exit.
func isJob(p *v1.Pod) bool {
	return !slices.ContainsFunc(p.Spec.Containers, func(c v1.Container) bool { return defaults.RestartPolicyOf(p, &c) == v1.RestartPolicyAlways })
}

func isSidecar(p *v1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool {
		return c.Name == name && defaults.IsSidecar(&c)
	})
}

// lastEnd returns how a container ended last, nil if it has not.
func lastEnd(s *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

func key(p *v1.Pod) string { return p.Namespace + "/" + p.Name }
