package podstatus

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
)

// EndStatus turns st into the final status of a pod with this result.
func EndStatus(s *plan.Facts, st *v1.PodStatus, v checkpoint.Result, last *v1.PodStatus) {
	st.Phase, st.Reason, st.Message = v.Phase, v.Reason, v.Message
	var before []v1.PodCondition
	if last != nil {
		before = slices.Clone(last.Conditions)
	}
	st.Conditions = conditions(s, st, before, nil)
}

// allRestarting returns the condition that all containers restart together.
func allRestarting(st *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	of := func(c v1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == plan.Resetting
	}
	switch {
	case st.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case st.Phase == v1.PodFailed:
		c.Reason = "PodFailed"
	case slices.ContainsFunc(slices.Concat(st.InitContainerStatuses, st.ContainerStatuses), of):
		c.Status, c.Reason = v1.ConditionTrue, "RestartAllContainersStarted"
	}
	return c
}

// phase returns the phase that follows from the container statuses (kubelet:
// getPhase). A sidecar that has stopped is ignored.
func phase(pod *v1.Pod, i *pleg.Instance, st *v1.PodStatus) v1.PodPhase {
	uninitialized, waiting, running, again, failed := false, 0, 0, 0, 0
	for k := range pod.Spec.InitContainers {
		c, is := &pod.Spec.InitContainers[k], &st.InitContainerStatuses[k]
		over := lastEnd(is)
		switch {
		case podspec.Restartable(c) && is.State.Running != nil:
			running++
			uninitialized = uninitialized || !*is.Started && !plan.RegularMade(pod, i)
		case podspec.Restartable(c) && over == nil:
			waiting++
		case over == nil:
			uninitialized = true
		case over.ExitCode != 0 && !willRestart(pod, c, i):
			return v1.PodFailed
		}
	}
	for k := range pod.Spec.Containers {
		c := &pod.Spec.Containers[k]
		is := statusNamed(st.ContainerStatuses, c.Name)
		switch over := lastEnd(is); {
		case is.State.Running != nil:
			running++
		case over == nil:
			waiting++
		case willRestart(pod, c, i):
			again++
		case over.ExitCode != 0:
			failed++
		}
	}
	switch {
	case uninitialized || waiting > 0:
		return v1.PodPending
	case running+again > 0:
		return v1.PodRunning
	case failed > 0:
		return v1.PodFailed
	}
	return v1.PodSucceeded
}

// lastEnd returns how a container that does not run ended; nil if it has not run.
func lastEnd(st *v1.ContainerStatus) *v1.ContainerStateTerminated {
	if st.State.Waiting != nil {
		return st.LastTerminationState.Terminated
	}
	return st.State.Terminated
}

func willRestart(pod *v1.Pod, c *v1.Container, i *pleg.Instance) bool {
	n := i.Newest(c.Name)
	return n == nil || plan.MayRestart(pod, c, n)
}

func statusNamed(all []v1.ContainerStatus, name string) *v1.ContainerStatus {
	return &all[slices.IndexFunc(all, func(c v1.ContainerStatus) bool { return c.Name == name })]
}

// conditions returns the pod's conditions in the kubelet's order, each with the time of its last
// transition. It adds the public part of the messages to public.
func conditions(s *plan.Facts, st *v1.PodStatus, last []v1.PodCondition, public message.Book) []v1.PodCondition {
	pod := s.Pod.Pod
	up := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	ended := st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed // the sandbox is stopped
	if trouble := plan.SandboxTrouble(pod, s.Instance()); ended || trouble != "" {
		f := s.Failures[plan.SandboxFailure]
		w := f.Waiting
		if w.Reason == "" && f.Made > 1 && !ended {
			w = plan.Waiting{Reason: plan.SandboxUnusable, Message: message.Of("%s; it was made again %d times", message.Name(trouble), message.Number(f.Made-1))}
		}
		if n, waits := s.NetworkWait(); waits && !ended {
			w = n
		}
		up.Status, up.Reason, up.Message = v1.ConditionFalse, w.Reason, public.Note(w.Message)
	} else if w, unknown := s.UnknownNetwork(); unknown {
		up.Status, up.Reason, up.Message = v1.ConditionUnknown, w.Reason, public.Note(w.Message)
	}
	initialized, said := condition(v1.PodInitialized, status.ReasonNotInitialized, "incomplete", initIncomplete(pod, s.Instance(), st), st.Phase)
	initialized.Message = public.Note(said)
	ready, said := condition(v1.ContainersReady, status.ReasonNotReady, "unready", unready(pod, st), st.Phase)
	if probes := s.ProbeMessages(st); probes != "" && ready.Reason == status.ReasonNotReady {
		said = message.Of("%s: %s", said, message.Private(probes))
	}
	ready.Message = public.Note(said)
	podReady := ready
	podReady.Type = v1.PodReady
	if len(pod.Spec.ReadinessGates) > 0 && ready.Status == v1.ConditionTrue {
		podReady.Status, podReady.Reason = v1.ConditionFalse, "ReadinessGatesNotReady"
		podReady.Message = public.Note(message.Of("corresponding condition of pod readiness gate %q does not exist.", message.Name(pod.Spec.ReadinessGates[0].ConditionType)))
	}
	out := []v1.PodCondition{up, initialized, podReady, ready, {Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	if plan.CanReset(pod) {
		out = append(out, allRestarting(st))
	}
	if w, resizes := s.Resizing(); resizes && !ended {
		out = append(out, v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionTrue, Reason: w.Reason, Message: public.Note(w.Message)})
	}
	if s.Halted.Terminated && s.Checkpoint().Ended() == "" {
		out = append(out, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonTerminationByKubelet, Message: public.Note(s.Halted.Message)})
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

// condition returns a condition that is true if missing, the list of containers that do not meet
// it, is empty; and its message.
func condition(kind v1.PodConditionType, reason, word string, missing []string, phase v1.PodPhase) (c v1.PodCondition, said message.Text) {
	c = v1.PodCondition{Type: kind, Status: v1.ConditionTrue}
	switch {
	case phase == v1.PodSucceeded && kind == v1.PodInitialized:
		c.Reason = "PodCompleted"
	case phase == v1.PodSucceeded:
		c.Status, c.Reason = v1.ConditionFalse, "PodCompleted"
	case phase == v1.PodFailed && kind != v1.PodInitialized:
		c.Status, c.Reason = v1.ConditionFalse, "PodFailed"
	case len(missing) > 0:
		c.Status, c.Reason = v1.ConditionFalse, reason
		said = message.Of("containers with %s status: [%s]", message.Name(word), message.Name(strings.Join(missing, " ")))
	}
	return c, said
}

// initIncomplete returns the init containers that later containers wait for.
func initIncomplete(pod *v1.Pod, i *pleg.Instance, st *v1.PodStatus) []string {
	for k := range pod.Spec.Containers {
		if n := i.Newest(pod.Spec.Containers[k].Name); n != nil && (n.Running() || n.Exited()) {
			return nil
		}
	}
	var out []string
	for k, c := range st.InitContainerStatuses {
		if podspec.Restartable(&pod.Spec.InitContainers[k]) && *c.Started || c.Ready {
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
		if podspec.Restartable(&pod.Spec.InitContainers[k]) && !c.Ready {
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

// IsReady reports whether pods that start after this one may start: this one is ready or has
// succeeded.
func IsReady(s *v1.PodStatus) bool {
	if s == nil {
		return false
	}
	return s.Phase == v1.PodSucceeded || slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}
