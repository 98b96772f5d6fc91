package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// phase sums the containers up (kubelet: getPhase).
func phase(pod *v1.Pod, i *instance, st *v1.PodStatus) v1.PodPhase {
	var sidecars, waiting, running, restarting, ended int
	initialized := true
	for k := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[k]
		n := i.newest(c.Name)
		switch {
		case restarts(c):
			initialized = initialized && n != nil && n.running()
			if n != nil && n.running() {
				sidecars++ // which must end too before the pod has ended
			}
		case n != nil && n.exited() && !succeeded(n) && !mayRestart(pod, c, n):
			return v1.PodFailed
		case n == nil || !succeeded(n):
			initialized = false
		}
	}
	for k := range pod.Spec.Containers {
		c := &pod.Spec.Containers[k]
		switch n := i.newest(c.Name); {
		case n == nil || !n.running() && !n.exited():
			waiting++
		case n.running() && shownWaiting(st, c.Name) && i.before(n) == nil:
			waiting++
		case n.running():
			running++
		case mayRestart(pod, c, n):
			restarting++
		default:
			ended++
		}
	}
	switch {
	case !initialized && running+restarting+ended == 0:
		return v1.PodPending
	case waiting > 0:
		return v1.PodPending
	case sidecars+running+restarting > 0:
		return v1.PodRunning
	case allSucceeded(pod, i):
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// shownWaiting reports whether a container is waiting to whoever reads the status.
func shownWaiting(st *v1.PodStatus, name string) bool {
	return slices.ContainsFunc(st.ContainerStatuses, func(c v1.ContainerStatus) bool {
		return c.Name == name && c.State.Waiting != nil
	})
}

// conditions returns the pod's conditions in the kubelet's order, each with
// the time since when it has been so.
func conditions(s *situation, st *v1.PodStatus, last []v1.PodCondition) []v1.PodCondition {
	pod := s.Pod.Pod
	up := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	ended := st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed // its sandbox is stopped
	if ended || sandboxTrouble(pod, s.instance()) != "" {
		f := s.Failures[sandboxFailure]
		up.Status, up.Reason, up.Message = v1.ConditionFalse, f.Reason, f.Message
	}
	initialized := condition(v1.PodInitialized, "ContainersNotInitialized", "incomplete", initIncomplete(pod, s.instance(), st), st.Phase)
	ready := condition(v1.ContainersReady, "ContainersNotReady", "unready", unready(pod, st), st.Phase)
	if ready.Reason == "ContainersNotReady" {
		ready.Message += s.unreadyTexts(st)
	}
	podReady := ready
	podReady.Type = v1.PodReady
	if len(pod.Spec.ReadinessGates) > 0 && ready.Status == v1.ConditionTrue {
		podReady.Status, podReady.Reason = v1.ConditionFalse, "ReadinessGatesNotReady"
		podReady.Message = fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", pod.Spec.ReadinessGates[0].ConditionType)
	}
	out := []v1.PodCondition{up, initialized, podReady, ready, {Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	if canReset(pod) {
		out = append(out, allRestarting(st))
	}
	for k := range out {
		out[k].ObservedGeneration = pod.Generation
		out[k].LastTransitionTime = metav1.Time{Time: s.Now.Truncate(time.Second)}
		for _, l := range last {
			if l.Type == out[k].Type && l.Status == out[k].Status {
				out[k].LastTransitionTime = l.LastTransitionTime
			}
		}
	}
	return out
}

// condition is true when no container is missing for it.
func condition(kind v1.PodConditionType, reason, word string, missing []string, phase v1.PodPhase) v1.PodCondition {
	c := v1.PodCondition{Type: kind, Status: v1.ConditionTrue}
	switch {
	case phase == v1.PodSucceeded && kind == v1.PodInitialized:
		c.Reason = "PodCompleted"
	case phase == v1.PodSucceeded:
		c.Status, c.Reason = v1.ConditionFalse, "PodCompleted"
	case phase == v1.PodFailed && kind != v1.PodInitialized:
		c.Status, c.Reason = v1.ConditionFalse, "PodFailed"
	case len(missing) > 0:
		c.Status, c.Reason = v1.ConditionFalse, reason
		c.Message = fmt.Sprintf("containers with %s status: [%s]", word, strings.Join(missing, " "))
	}
	return c
}

// initIncomplete returns the init containers that others still wait for.
func initIncomplete(pod *v1.Pod, i *instance, st *v1.PodStatus) []string {
	for k := range pod.Spec.Containers {
		if n := i.newest(pod.Spec.Containers[k].Name); n != nil && (n.running() || n.exited()) {
			return nil
		}
	}
	var out []string
	for k, c := range st.InitContainerStatuses {
		if restarts(&pod.Spec.InitContainers[k]) && *c.Started || c.Ready {
			continue
		}
		out = append(out, c.Name)
	}
	return out
}

// unready returns the regular containers and sidecars that are not ready.
func unready(pod *v1.Pod, st *v1.PodStatus) []string {
	var out []string
	for k, c := range st.InitContainerStatuses {
		if restarts(&pod.Spec.InitContainers[k]) && !c.Ready {
			out = append(out, c.Name)
		}
	}
	for _, c := range st.ContainerStatuses {
		if !c.Ready {
			out = append(out, c.Name)
		}
	}
	return out
}
