package agent

import (
	"maps"
	"time"

	"monopod/manifests"
)

// arrival is a desired pod, and when this version of it was first read.
type arrival struct {
	pod      *manifests.Pod
	at       time.Time
	snapshot uint64 // the last one that had the pod
}

// arrived records the pods of a snapshot. It returns those that are new or not the
// same objects as in the snapshot before, and the names of those that are gone.
func (l *syncLoop) arrived(pods []*manifests.Pod) (changed []*manifests.Pod, gone []manifests.Key) {
	l.offered++
	known := len(l.arrivals)
	for _, p := range pods {
		key := p.Key()
		a := l.arrivals[key]
		switch {
		case a == nil:
			a = &arrival{pod: p, at: time.Now()}
			l.arrivals[key] = a
			l.order.Touch(key)
			changed = append(changed, p)
		case a.pod != p:
			if !manifests.Same(a.pod, p) {
				a.at = time.Now()
			}
			a.pod = p
			changed = append(changed, p)
		}
		a.snapshot = l.offered
	}
	if added := len(l.arrivals) - known; added > 0 || len(l.arrivals) > len(pods) || l.offered == 1 {
		gone = l.forgetArrivals()
		l.publishNames(changed, gone)
	}
	return changed, gone
}

// forgetArrivals forgets the pods that the last snapshot has not, and returns their names.
func (l *syncLoop) forgetArrivals() (gone []manifests.Key) {
	for key, a := range l.arrivals {
		if a.snapshot != l.offered {
			gone = append(gone, key)
			delete(l.arrivals, key)
		}
	}
	return gone
}

// publishNames gives other goroutines the names of all desired pods.
func (l *syncLoop) publishNames(changed []*manifests.Pod, gone []manifests.Key) {
	names := maps.Clone(l.desiredNames())
	if names == nil {
		names = make(map[string]bool, len(changed))
	}
	for _, p := range changed {
		names[p.Key().String()] = true
	}
	for _, key := range gone {
		delete(names, key.String())
	}
	l.desired.Store(&names)
}

// isDesired reports whether a pod is in the last snapshot.
func (l *syncLoop) isDesired(key manifests.Key) bool { return l.arrivals[key] != nil }

// desiredNames returns the names of all desired pods. Any goroutine may call it; the
// result must not be changed.
func (l *syncLoop) desiredNames() map[string]bool {
	if names := l.desired.Load(); names != nil {
		return *names
	}
	return nil
}
