package annotations

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Annotations by which a pod has its own back-off for containers that crash:
// durations such as 10s.
const (
	BackOffFirst = "monopod.backoff-first" // the wait before the second restart
	BackOffMax   = "monopod.backoff-max"   // the longest wait
)

// What a back-off may be: below, a container that crashes would keep the
// machine busy with nothing else.
const (
	backOffLeast = 100 * time.Millisecond
	backOffMost  = 24 * time.Hour
)

// BackOffOf returns what a pod's annotations say of its back-off; 0: nothing
// that makes sense.
func BackOffOf(pod *v1.Pod) (first, most time.Duration) {
	first, _ = ParseBackOff(pod, BackOffFirst)
	most, _ = ParseBackOff(pod, BackOffMax)
	return first, most
}

// ParseBackOff returns one of the annotations, and whether it is absent or in order.
func ParseBackOff(pod *v1.Pod, name string) (time.Duration, bool) {
	text, there := pod.Annotations[name]
	if !there {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < backOffLeast || d > backOffMost {
		return 0, false
	}
	return d, true
}
