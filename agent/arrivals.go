package agent

import (
	"time"

	"monopod/manifests"
)

// arrival is when a version of a pod was first read.
type arrival struct {
	pod *manifests.Pod
	at  time.Time
}

// arrived records when each version of a snapshot was first read, and returns the
// names of all desired pods.
func (l *syncLoop) arrived(pods []*manifests.Pod) map[manifests.Key]bool {
	all := make(map[manifests.Key]arrival, len(pods))
	desired, names := make(map[manifests.Key]bool, len(pods)), make(map[string]bool, len(pods))
	for _, p := range pods {
		key := p.Key()
		was, known := l.arrivals[key]
		if !known || !manifests.Same(was.pod, p) {
			was.at = time.Now()
		}
		all[key], desired[key], names[key.String()] = arrival{p, was.at}, true, true
	}
	l.arrivals = all
	l.desired.Store(&names)
	return desired
}

// desiredNames returns the names of all desired pods. Any goroutine may call it; the
// result must not be changed.
func (l *syncLoop) desiredNames() map[string]bool {
	if names := l.desired.Load(); names != nil {
		return *names
	}
	return nil
}
