package print

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// PodWords say what is wrong with pods, what they wait for, and how containers ended
// badly. One cause is one line.
func PodWords(pods []v1.Pod) []string {
	var words []string
	for i := range pods {
		name := pods[i].Namespace + "/" + ShortName(&pods[i])
		for _, line := range podWords(&pods[i]) {
			words = append(words, name+": "+line)
		}
	}
	return words
}

// podWords are the lines of one pod, without its name.
func podWords(p *v1.Pod) []string {
	var words []string
	if p.Status.Message != "" {
		words = append(words, JoinWords(p.Status.Reason, p.Status.Message))
	}
	if w := waitsWhole(p); w != nil {
		words = append(words, JoinWords(w.Reason, w.Message))
	} else {
		words = append(words, containersWords(p)...)
	}
	for _, c := range p.Status.Conditions {
		if tells(c) && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, c.Message) }) {
			words = append(words, JoinWords(c.Reason, c.Message))
		}
	}
	words = append(words, status.ProblemsOf(p)...)
	if held := p.Annotations[status.AnnHeld]; held != "" && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, held) }) {
		words = append(words, held)
	}
	for k := range words {
		words[k] = OneLine(words[k])
	}
	return words
}

// waitsWhole returns why the pod's containers wait, if all do for one reason.
func waitsWhole(p *v1.Pod) *v1.ContainerStateWaiting {
	all := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	if len(all) < 2 {
		return nil
	}
	first := all[0].State.Waiting
	for _, s := range all {
		if w := s.State.Waiting; w == nil || *w != *first || w.Message == "" || s.LastTerminationState.Terminated != nil {
			return nil
		}
	}
	return first
}

func containersWords(p *v1.Pod) []string {
	var words []string
	leaves := p.DeletionTimestamp != nil
	for _, s := range p.Status.InitContainerStatuses {
		if !saidOfPod(p, s) {
			words = append(words, containerWords("init container "+s.Name, s, leaves)...)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if !saidOfPod(p, s) {
			words = append(words, containerWords("container "+s.Name, s, leaves)...)
		}
	}
	return words
}

// saidOfPod reports whether a container waits for what the whole pod does.
func saidOfPod(p *v1.Pod, s v1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && w.Message == "" && w.Reason != "" && w.Reason == p.Status.Reason
}

// containerWords is nothing for a container that is well or on its way, or that was
// asked to end.
func containerWords(subject string, s v1.ContainerStatus, leaves bool) []string {
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 && !leaves {
		return []string{JoinWords(subject, t.Reason, EndedWith(t), t.Message)}
	}
	w := s.State.Waiting
	if w == nil || !Waits(s) || (w.Reason == "ContainerCreating" && w.Message == "") {
		return nil
	}
	line := JoinWords(subject, w.Reason, w.Message)
	if t := s.LastTerminationState.Terminated; t != nil && w.Reason == "CrashLoopBackOff" {
		line += fmt.Sprintf(" (last time: %s)", JoinWords(EndedWith(t), t.Message))
	}
	return []string{line}
}

// tells reports whether a condition is not as it should be and says why. One that only
// names the containers concerned has its cause elsewhere.
func tells(c v1.PodCondition) bool {
	return c.Status != v1.ConditionTrue && c.Message != "" && !strings.HasPrefix(c.Message, "containers with ")
}
