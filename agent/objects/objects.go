// Package objects holds the present ConfigMaps and Secrets, and finds the references of pods to
// them.
package objects

import (
	"maps"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/documents"
)

// Store has the objects of the manifests. The sync loop sets them, and any goroutine may read them.
// The zero value has none.
type Store struct{ now atomic.Pointer[Set] }

// KeyOf returns the key of an object by its kind in lower case.
func KeyOf(kind, namespace, name string) manifests.ObjectKey {
	key := manifests.ObjectKey{Kind: documents.ConfigMap, Namespace: namespace, Name: name}
	if kind == "secret" {
		key.Kind = documents.Secret
	}
	return key
}

// Set is the objects at one time. It is never changed; nil has none.
type Set struct {
	all      map[manifests.ObjectKey]*manifests.Object // including the retained ones
	retained map[manifests.ObjectKey]bool              // no manifest gives them any more, but versions of pods need them
	sums     *sums                                     // of these and of former objects
}

// NewSet returns a set of objects with different keys.
func NewSet(all []*manifests.Object) *Set {
	s := &Set{all: make(map[manifests.ObjectKey]*manifests.Object, len(all)), sums: &sums{}}
	for _, o := range all {
		s.all[o.Key()] = o
	}
	return s
}

// Now returns the present objects.
func (s *Store) Now() *Set { return s.now.Load() }

// Missing is Set.Missing of the present objects.
func (s *Store) Missing(pod *manifests.Pod) string { return s.Now().Missing(pod) }

// Start stores the objects of previous agents.
func (s *Store) Start(given, retained []*manifests.Object) {
	now := NewSet(given)
	now.retain(retained)
	s.now.Store(now)
}

// All returns the present objects, in no order.
func (s *Store) All() []*manifests.Object {
	if now := s.Now(); now != nil {
		return slices.Collect(maps.Values(now.all))
	}
	return nil
}

// Replace stores new objects, and retains former ones that versions of pods need and that are not
// given: this keeps their presence, not their content. It returns the keys of those that were
// added, changed or removed.
func (s *Store) Replace(given []*manifests.Object, users *Users) (changed []manifests.ObjectKey) {
	next, before := NewSet(given), s.Now()
	if before != nil {
		next.retain(before.needed(users))
	}
	for key, o := range next.all {
		if was := before.get(key); was == nil || was != o && !was.Same(o) {
			changed = append(changed, key)
		}
	}
	if before != nil {
		next.sums = before.sums
		next.sums.keep(next)
		for key := range before.all {
			if next.all[key] == nil {
				changed = append(changed, key)
			}
		}
	}
	s.now.Store(next)
	slices.SortFunc(changed, manifests.ObjectKey.Compare)
	return changed
}

// Release drops the retained objects that are no longer needed. It reports whether there were any.
func (s *Store) Release(users *Users) bool {
	now := s.Now()
	if now == nil || !now.hasUnneeded(users) {
		return false
	}
	var given []*manifests.Object
	for key, o := range now.all {
		if !now.retained[key] {
			given = append(given, o)
		}
	}
	s.Replace(given, users)
	return true
}

// retain adds objects that no manifest gives. If an object is given, too, that one is used.
func (s *Set) retain(all []*manifests.Object) {
	for _, o := range all {
		key := o.Key()
		if s.all[key] != nil {
			continue
		}
		if s.retained == nil {
			s.retained = map[manifests.ObjectKey]bool{}
		}
		s.all[key], s.retained[key] = o, true
	}
}

// needed returns the objects to which versions of pods refer.
func (s *Set) needed(users *Users) (all []*manifests.Object) {
	for key, o := range s.all {
		if users.Need(key) {
			all = append(all, o)
		}
	}
	return all
}

func (s *Set) hasUnneeded(users *Users) bool {
	for key := range s.retained {
		if !users.Need(key) {
			return true
		}
	}
	return false
}

func (s *Set) get(key manifests.ObjectKey) *manifests.Object {
	if s == nil {
		return nil
	}
	return s.all[key]
}

// ConfigMap returns a ConfigMap, nil if there is none. It must not be changed. There is
// never an error.
func (s *Set) ConfigMap(namespace, name string) (*v1.ConfigMap, error) {
	if o := s.get(manifests.ObjectKey{Kind: documents.ConfigMap, Namespace: namespace, Name: name}); o != nil {
		return o.ConfigMap, nil
	}
	return nil, nil
}

// Secret returns a Secret, nil if there is none. It must not be changed. There is never
// an error.
func (s *Set) Secret(namespace, name string) (*v1.Secret, error) {
	if o := s.get(manifests.ObjectKey{Kind: documents.Secret, Namespace: namespace, Name: name}); o != nil {
		return o.Secret, nil
	}
	return nil, nil
}
