// Package desired knows the pods that the manifests give, and since when.
package desired

import (
	"maps"
	"sync/atomic"
	"time"

	"monopod/manifests"
)

// Arrival is a desired pod, and when this version of it was first read.
type Arrival struct {
	Pod      *manifests.Pod
	At       time.Time
	snapshot uint64 // the last one that had the pod
}

// Pods are the desired pods. The sync loop's goroutine owns them; any other may ask for
// their names.
type Pods struct {
	New func(manifests.Key) // is told of each that was not desired before

	all     map[manifests.Key]*Arrival
	offered uint64 // snapshots so far
	names   atomic.Pointer[map[string]bool]
}

// Take records the pods of a snapshot. It returns those that are new or not the
// same objects as in the snapshot before, and the names of those that are gone.
func (d *Pods) Take(pods []*manifests.Pod) (changed []*manifests.Pod, gone []manifests.Key) {
	if d.all == nil {
		d.all = map[manifests.Key]*Arrival{}
	}
	d.offered++
	known := len(d.all)
	for _, p := range pods {
		key := p.Key()
		a := d.all[key]
		switch {
		case a == nil:
			a = &Arrival{Pod: p, At: time.Now()}
			d.all[key] = a
			d.New(key)
			changed = append(changed, p)
		case a.Pod != p:
			if !manifests.Same(a.Pod, p) {
				a.At = time.Now()
			}
			a.Pod = p
			changed = append(changed, p)
		}
		a.snapshot = d.offered
	}
	if added := len(d.all) - known; added > 0 || len(d.all) > len(pods) || d.offered == 1 {
		gone = d.forget()
		d.publish(changed, gone)
	}
	return changed, gone
}

// forget forgets the pods that the last snapshot has not, and returns their names.
func (d *Pods) forget() (gone []manifests.Key) {
	for key, a := range d.all {
		if a.snapshot != d.offered {
			gone = append(gone, key)
			delete(d.all, key)
		}
	}
	return gone
}

// publish gives other goroutines the names of all desired pods.
func (d *Pods) publish(changed []*manifests.Pod, gone []manifests.Key) {
	names := maps.Clone(d.Names())
	if names == nil {
		names = make(map[string]bool, len(changed))
	}
	for _, p := range changed {
		names[p.Key().String()] = true
	}
	for _, key := range gone {
		delete(names, key.String())
	}
	d.names.Store(&names)
}

// Of returns the desired pod of a name; nil: there is none.
func (d *Pods) Of(key manifests.Key) *Arrival { return d.all[key] }

// Has reports whether a pod is in the last snapshot.
func (d *Pods) Has(key manifests.Key) bool { return d.all[key] != nil }

// Names returns the names of all desired pods. Any goroutine may call it; the result must
// not be changed.
func (d *Pods) Names() map[string]bool {
	if names := d.names.Load(); names != nil {
		return *names
	}
	return nil
}
