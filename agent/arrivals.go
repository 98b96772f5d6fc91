package agent

import (
	"sync"
	"time"

	"monopod/manifests"
)

// arrivals remembers since when each pod is wanted as it is. The sync loop takes
// note of them; anybody may ask.
type arrivals struct {
	born time.Time // when the first could be

	mu  sync.Mutex
	all map[manifests.Key]arrival
}

// arrival is when a version of a pod was first read.
type arrival struct {
	pod *manifests.Pod
	at  time.Time
}

// note takes note of all pods that are wanted now.
func (a *arrivals) note(pods []*manifests.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[manifests.Key]arrival, len(pods))
	for _, p := range pods {
		was, known := a.all[p.Key()]
		if !known || !same(was.pod, p) {
			was.at = time.Now()
		}
		all[p.Key()] = arrival{p, was.at}
	}
	a.all = all
}

// of returns since when the pod is wanted as it is; zero: it is not.
func (a *arrivals) of(p *manifests.Pod) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was, known := a.all[p.Key()]; known && same(was.pod, p) {
		return was.at
	}
	return time.Time{}
}

// keys returns the names of all pods that are wanted.
func (a *arrivals) keys() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := make(map[string]bool, len(a.all))
	for key := range a.all {
		keys[key.String()] = true
	}
	return keys
}
