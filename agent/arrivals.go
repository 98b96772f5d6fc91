package agent

import (
	"time"

	"monopod/manifests"
)

// arrival is when a version of a pod was read first.
type arrival struct {
	pod *manifests.Pod
	at  time.Time
}

// arrived notes since when each pod of a snapshot is wanted as it is, and
// returns the names of all.
func (l *syncLoop) arrived(pods []*manifests.Pod) map[manifests.Key]bool {
	all := make(map[manifests.Key]arrival, len(pods))
	wanted, names := make(map[manifests.Key]bool, len(pods)), make(map[string]bool, len(pods))
	for _, p := range pods {
		key := p.Key()
		was, known := l.arrivals[key]
		if !known || !manifests.Same(was.pod, p) {
			was.at = time.Now()
		}
		all[key], wanted[key], names[key.String()] = arrival{p, was.at}, true, true
	}
	l.arrivals = all
	l.desired.Store(&names)
	return wanted
}

// wanted returns the names of all pods that are wanted. Any goroutine may ask;
// nobody changes the answer.
func (l *syncLoop) wanted() map[string]bool {
	if names := l.desired.Load(); names != nil {
		return *names
	}
	return nil
}
