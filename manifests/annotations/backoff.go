package annotations

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Annotations that give a pod its own back-off for containers that crash: durations such as 10s.
const (
	BackOffFirst = "monopod.backoff-first" // the wait before the second restart
	BackOffMax   = "monopod.backoff-max"   // the longest wait
)

// Bounds of a back-off: below the lower one, a crashing container would keep the machine busy.
const (
	backOffLeast = 100 * time.Millisecond
	backOffMost  = 24 * time.Hour
)

// BackOffOf returns the back-off that a pod's annotations set; 0: absent or invalid.
func BackOffOf(pod *v1.Pod) (first, most time.Duration) {
	first, _ = ParseBackOff(pod, BackOffFirst)
	most, _ = ParseBackOff(pod, BackOffMax)
	return first, most
}

// ParseBackOff returns the value of one of the annotations, and whether it is absent or valid.
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
