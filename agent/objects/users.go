package objects

import (
	"slices"

	"monopod/manifests"
)

// Users counts the references of pods' versions to objects: such objects are retained when no
// manifest gives them any more. One goroutine owns it. The zero value counts none.
type Users struct{ counts map[manifests.ObjectKey]int }

// Needs are the versions of one pod name, and all objects that they refer to. The zero value has
// none.
type Needs struct {
	versions Versions
	keys     []manifests.ObjectKey
}

// Versions are the versions of one pod name that may run, or run again; nil: there is none.
type Versions struct{ Accepted, Offered, Prepared, Stopped, Former *manifests.Pod }

func (v *Versions) all() []*manifests.Pod {
	return []*manifests.Pod{v.Accepted, v.Offered, v.Prepared, v.Stopped, v.Former}
}

// IsEmpty reports whether no object is needed.
func (n *Needs) IsEmpty() bool { return len(n.keys) == 0 }

// Count counts the present versions of a pod name. It reports whether some object has no reference
// any more. Unchanged versions cost one comparison.
func (u *Users) Count(n *Needs, now Versions) (freed bool) {
	if n.versions == now {
		return false
	}
	before := n.keys
	n.versions, n.keys = now, nil
	seen := make([]*manifests.Pod, 0, 5)
	for _, p := range now.all() {
		if p == nil || slices.Contains(seen, p) {
			continue
		}
		seen = append(seen, p)
		for _, key := range Names(p.Pod) {
			if !slices.Contains(n.keys, key) {
				n.keys = append(n.keys, key)
			}
		}
	}
	for _, key := range n.keys {
		if u.counts == nil {
			u.counts = map[manifests.ObjectKey]int{}
		}
		u.counts[key]++
	}
	for _, key := range before {
		u.counts[key]--
		if u.counts[key] == 0 {
			delete(u.counts, key)
			freed = true
		}
	}
	return freed
}

// Need reports whether any version refers to the object. A nil Users has no versions.
func (u *Users) Need(key manifests.ObjectKey) bool { return u != nil && u.counts[key] > 0 }
