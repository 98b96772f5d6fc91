package notify

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// words are the states of pods, in the order in which they are reported.
var words = []string{"running", "waiting", "succeeded", "failed", "refused", "unknown"}

// wordOf returns the state of a pod. A refused one has failed, too, but has no container yet: it
// is admitted once the reason is gone. The phase of one whose containers are to be started again,
// as after a reboot, is Running, though none of them runs.
func wordOf(p *v1.Pod) string {
	switch p.Status.Phase {
	case v1.PodRunning:
		if !slices.ContainsFunc(p.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.State.Running != nil }) {
			return "waiting"
		}
		return "running"
	case v1.PodPending:
		return "waiting"
	case v1.PodSucceeded:
		return "succeeded"
	case v1.PodFailed:
		if len(p.Status.ContainerStatuses) == 0 {
			return "refused"
		}
		return "failed"
	default:
		return "unknown"
	}
}

// Line returns in one line the states of the pods, such as "12 pods: 11 running, 1 waiting", and
// behind it the problems of the runtime and the manifests.
func Line(pods []*v1.Pod, runtime status.Runtime, m status.Manifests) string {
	counts := map[string]int{}
	for _, p := range pods {
		counts[wordOf(p)]++
	}
	var parts []string
	for _, word := range words {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	line := number(len(pods), "pod")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if n := errorsOf(m); n > 0 {
		line += "; " + number(n, "problem") + " in manifests, see monopod ps"
	}
	if !runtime.Up {
		line += "; runtime down: " + runtime.Error
	}
	return line
}

func number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// errorsOf counts the problems of manifests that are not warnings.
func errorsOf(m status.Manifests) (n int) {
	count := func(all []status.Problem) {
		for _, p := range all {
			if !p.Warning {
				n++
			}
		}
	}
	count(m.Problems)
	for _, f := range m.Files {
		count(f.Problems)
	}
	return n
}
