package once

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// hopelessAfter is how often in a row something must have crashed, or have failed to be created
// with the same answer, for the run to stop waiting for it.
const hopelessAfter = 5

// hopeless ends a run without a time limit in which everything that it waits for fails again and
// again.
func (j *evaluator) hopeless(all []view) *outcome {
	if j.timed {
		return nil
	}
	why := j.hopelessPods(all)
	var texts []string
	for k := range all {
		v := &all[k]
		if !j.awaits(v) {
			continue
		}
		text := why[key(v.pod)]
		if text == "" {
			return nil
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil
	}
	return &outcome{End: endError, Code: codeFailed, Text: "the pods wait for what does not end by itself, and no --timeout is given: " + strings.Join(texts, "; ")}
}

// awaits reports whether the run waits for a pod.
func (j *evaluator) awaits(v *view) bool {
	switch {
	case j.ready:
		return !v.ready()
	case j.from != nil && v.pod == j.from.Pod:
		return !j.chosenDone(v)
	}
	return isJob(v.pod) && !v.ended()
}

// hopelessPods returns, by key, why pods will not reach what the run waits for: they fail again
// and again, or start after one that does. A pod that has a limit of its own is not among them.
func (j *evaluator) hopelessPods(all []view) map[string]string {
	out := map[string]string{}
	for k := range all {
		if text := j.failsOn(&all[k]); text != "" {
			out[key(all[k].pod)] = text
		}
	}
	for again := true; again; {
		again = false
		for k := range all {
			v := &all[k]
			if out[key(v.pod)] == "" && v.held() && j.waitsFor(all, v, out) {
				out[key(v.pod)], again = "pod "+j.names.pod(v.pod)+" starts after one that fails", true
			}
		}
	}
	return out
}

// waitsFor reports whether a held pod starts after one of these pods, however long it takes.
func (j *evaluator) waitsFor(all []view, v *view, which map[string]string) bool {
	order := annotations.OrderOf(v.pod)
	if order.Timeout > 0 {
		return false
	}
	for _, after := range order.After {
		if which[called(all, after)] != "" {
			return true
		}
	}
	return false
}

// failsOn returns how a pod fails again and again: one of its containers does, and no other one
// works towards the pod's end; "": it does not.
func (j *evaluator) failsOn(v *view) string {
	_, limited := annotations.JobRetriesOf(v.pod)
	if v.status == nil || v.ended() || limited || v.pod.Spec.ActiveDeadlineSeconds != nil {
		return ""
	}
	if f := j.starts.of(v.pod, ""); f.times >= hopelessAfter && j.past.failedSince(v, "", j.starts) {
		return "pod " + j.names.pod(v.pod) + " " + f.words()
	}
	why := ""
	for _, s := range v.containers() {
		if !j.counts(v, s.Name) {
			continue
		}
		switch text := j.containerFailsOn(v, &s); {
		case text != "":
			why = j.names.pod(v.pod) + "/" + s.Name + " " + text
		case isJob(v.pod) && !j.ready && atWork(&s):
			return ""
		}
	}
	return why
}

// counts reports whether a container decides on the pod's end. In the pod of a chosen container
// the others decide only before it starts.
func (j *evaluator) counts(v *view, name string) bool {
	chosen := j.from != nil && v.pod == j.from.Pod && j.from.Container != ""
	if chosen && name != j.from.Container {
		return isInit(v.pod, name) && !v.started()
	}
	return j.ready || !isJob(v.pod) || !isSidecar(v.pod, name) || !v.started()
}

// containerFailsOn returns how a container has failed too often in a row; "": it has not. One
// that runs, or is being started, may succeed this time.
func (j *evaluator) containerFailsOn(v *view, s *v1.ContainerStatus) string {
	if s.State.Running != nil || isBeingStarted(s) || !j.past.failedSince(v, s.Name, j.starts) {
		return ""
	}
	if f := j.starts.of(v.pod, s.Name); f.times >= hopelessAfter && s.State.Waiting != nil {
		return f.words()
	}
	t := lastEnd(s)
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	if times := attemptOf(s) - j.past.good[containerKey(v.pod, s.Name)]; times >= hopelessAfter {
		return fmt.Sprintf("has crashed %d times in a row, and %s", times, endWords(t))
	}
	return ""
}

// uncreatable returns how often in a row the runtime did not make a container, with one answer that
// need not be understood; "": it may make it yet. A deadline is its pod's own limit. While another
// container of the pod runs, it may put what is missing into a volume.
func (j *evaluator) uncreatable(v *view, s *v1.ContainerStatus) string {
	f, w := j.starts.of(v.pod, s.Name), s.State.Waiting
	switch {
	case w == nil || w.Reason != createError || f.reason != createError || f.times < hopelessAfter:
		return ""
	case v.pod.Spec.ActiveDeadlineSeconds != nil || !j.past.failedSince(v, s.Name, j.starts):
		return ""
	case mayComeToBe(v.pod, s.Name) && v.runs():
		return ""
	}
	return f.words()
}

// isBeingStarted reports whether a container waits for nothing but its start, which is being
// tried: the last failure is no reason any more, and its hook may run.
func isBeingStarted(s *v1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && (w.Reason == "" || w.Reason == "PodInitializing" || w.Reason == "ContainerCreating")
}

// atWork reports whether a container may still bring its pod nearer to its end.
func atWork(s *v1.ContainerStatus) bool {
	w := s.State.Waiting
	return s.State.Running != nil || w != nil && w.Reason != "PodInitializing" && w.Reason != ""
}

// started reports whether a container of the pod that is not one of its init containers has been
// made.
func (v *view) started() bool {
	if v.status == nil {
		return false
	}
	for _, s := range v.status.ContainerStatuses {
		if s.ContainerID != "" {
			return true
		}
	}
	return false
}

func isInit(p *v1.Pod, name string) bool {
	for k := range p.Spec.InitContainers {
		if p.Spec.InitContainers[k].Name == name {
			return true
		}
	}
	return false
}
