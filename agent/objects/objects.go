// Package objects is the ConfigMaps and Secrets that there are now, and what pods refer to of them.
package objects

import (
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/documents"
)

// Store has the objects of the manifests. The sync loop sets them, and any goroutine may
// read them. The zero value has none.
type Store struct{ now atomic.Pointer[Set] }

// KeyOf returns the key of an object by its kind in small letters.
func KeyOf(kind, namespace, name string) manifests.ObjectKey {
	key := manifests.ObjectKey{Kind: documents.ConfigMap, Namespace: namespace, Name: name}
	if kind == "secret" {
		key.Kind = documents.Secret
	}
	return key
}

// Set is the objects at one moment. It is never changed; nil has none.
type Set struct {
	all  map[manifests.ObjectKey]*manifests.Object
	sums *sums // of these and of those before
}

// NewSet returns a set of objects with different keys.
func NewSet(all []*manifests.Object) *Set {
	s := &Set{all: make(map[manifests.ObjectKey]*manifests.Object, len(all)), sums: &sums{}}
	for _, o := range all {
		s.all[o.Key()] = o
	}
	return s
}

// Now returns the objects that there are.
func (s *Store) Now() *Set { return s.now.Load() }

// Missing is Set.Missing of those that there are.
func (s *Store) Missing(pod *manifests.Pod) string { return s.Now().Missing(pod) }

// Replace makes these the objects that there are, and returns the keys of those that
// came, changed or went.
func (s *Store) Replace(all []*manifests.Object) (changed []manifests.ObjectKey) {
	next, before := NewSet(all), s.Now()
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
