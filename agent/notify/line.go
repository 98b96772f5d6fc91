package notify

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// states are the words for pods of each phase, in the order in which they are told.
var states = []struct {
	phase v1.PodPhase
	word  string
}{{v1.PodRunning, "running"}, {v1.PodPending, "waiting"}, {v1.PodSucceeded, "succeeded"}, {v1.PodFailed, "failed"}, {v1.PodUnknown, "unknown"}}

// Line says in one line how the pods are, such as "12 pods: 11 running, 1 waiting",
// and behind it what is wrong with the runtime and the manifests.
func Line(pods []*v1.Pod, runtime status.Runtime, m status.Manifests) string {
	counts := map[v1.PodPhase]int{}
	for _, p := range pods {
		counts[p.Status.Phase]++
	}
	var parts []string
	for _, s := range states {
		if n := counts[s.phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.word))
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
