package decode

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// AnnotationUpdate is the annotation by which a pod says when its former version stops:
// UpdatePrepare, once all is there that this one needs, or UpdateStopFirst, at once.
const (
	AnnotationUpdate = "monopod.update"
	UpdatePrepare    = "prepare"
	UpdateStopFirst  = "stop-first"
)

// AnnotationUpdateHealth is the annotation by which a pod says within what time it must
// be ready after it took the place of its former version, such as 30s; 0s: no matter.
const AnnotationUpdateHealth = "monopod.update-health"

const (
	updateHealthLeast = time.Second
	updateHealthMost  = 24 * time.Hour
)

// UpdateHealth returns that time, whether the pod says it, and whether it is in order or absent.
func UpdateHealth(pod *v1.Pod) (within time.Duration, said, good bool) {
	text, said := pod.Annotations[AnnotationUpdateHealth]
	if !said {
		return 0, false, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && (d < updateHealthLeast || d > updateHealthMost) {
		return 0, false, false
	}
	return d, true, true
}
