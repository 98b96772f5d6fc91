package manifests

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations by which a pod has its own back-off for containers that crash:
// durations such as 10s.
const (
	AnnotationBackOffFirst = "monopod.backoff-first" // the wait before the second restart
	AnnotationBackOffMax   = "monopod.backoff-max"   // the longest wait
)

// What a back-off may be: below, a container that crashes would keep the
// machine busy with nothing else.
const (
	backOffLeast = 100 * time.Millisecond
	backOffMost  = 24 * time.Hour
)

// BackOff returns what a pod's annotations say of its back-off; 0: nothing
// that makes sense.
func BackOff(pod *v1.Pod) (first, most time.Duration) {
	first, _ = backOff(pod, AnnotationBackOffFirst)
	most, _ = backOff(pod, AnnotationBackOffMax)
	return first, most
}

// backOff returns one of the annotations, and whether it is absent or in order.
func backOff(pod *v1.Pod, name string) (time.Duration, bool) {
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

// backOff checks the annotations about it.
func (c *checker) backOff(p *field.Path) {
	for _, name := range []string{AnnotationBackOffFirst, AnnotationBackOffMax} {
		if _, ok := backOff(c.pod, name); !ok {
			c.add(field.Invalid(p.Key(name), c.pod.Annotations[name], "must be a duration from 100ms to 24h, such as 10s or 5m"))
		}
	}
	if first, most := BackOff(c.pod); most > 0 && first > most {
		c.add(field.Invalid(p.Key(AnnotationBackOffFirst), c.pod.Annotations[AnnotationBackOffFirst], "must not be longer than "+AnnotationBackOffMax))
	}
}
