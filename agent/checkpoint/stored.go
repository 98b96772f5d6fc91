package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests"
)

// storedPods are the pods of the checkpoints on disk, so that queries read no file. Any goroutine
// may use it.
type storedPods struct {
	mu    sync.Mutex
	byUID map[string]*Checkpoint
	next  map[manifests.Key]*Checkpoint // the next versions
}

func (s *storedPods) put(c *Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUID == nil {
		s.byUID = map[string]*Checkpoint{}
	}
	s.byUID[c.Uid()] = c
}

// putNext requires the lock.
func (s *storedPods) putNext(c *Checkpoint) {
	if s.next == nil {
		s.next = map[manifests.Key]*Checkpoint{}
	}
	s.next[c.Key()] = c
}

// hasNext requires the lock.
func (s *storedPods) hasNext(uid string) bool {
	for _, c := range s.next {
		if c.Uid() == uid {
			return true
		}
	}
	return false
}

// StoredPods returns, by uid, the pods that have a checkpoint and are not in removal, and next
// versions. They must not be changed.
func (r *Root) StoredPods() []*v1.Pod {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	var out []*v1.Pod
	for _, uid := range slices.Sorted(maps.Keys(r.stored.byUID)) {
		if c := r.stored.byUID[uid]; !c.IsRemoving() {
			out = append(out, c.Pod)
		}
	}
	for _, c := range r.stored.next {
		out = append(out, c.Pod)
	}
	return out
}

// Forget releases what the root dir holds for a pod whose dir is removed.
func (r *Root) Forget(uid string) {
	r.Users.Release(uid)
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	delete(r.stored.byUID, uid)
}

// Remnant is why a pod's dir may belong to no pod any more.
type Remnant int

const (
	NoRemnant  Remnant = iota // there is no such dir, or it has a checkpoint
	Orphaned                  // it has no checkpoint
	Unreadable                // its checkpoint is unusable
)

// Remnant returns whether and why a pod's dir may belong to no pod any more.
func (r *Root) Remnant(uid string) Remnant {
	if r.isStored(uid) {
		return NoRemnant
	}
	_, err := r.load(uid, disk.Read)
	switch damaged := (*disk.Damaged)(nil); {
	case errors.As(err, &damaged), errors.Is(err, fs.ErrNotExist) && Exists(disk.AsideOf(r.checkpoint(uid))):
		return Unreadable
	case errors.Is(err, fs.ErrNotExist) && Exists(r.PodDir(uid)):
		return Orphaned
	}
	return NoRemnant
}

// isStored reports whether a pod has a checkpoint that was read or written.
func (r *Root) isStored(uid string) bool {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	if r.stored.hasNext(uid) && Exists(r.next(uid)) {
		return true
	}
	if r.stored.byUID[uid] == nil {
		return false
	}
	_, err := os.Lstat(r.checkpoint(uid))
	return err == nil
}

// IsOfAnother reports whether another pod than that of key has a checkpoint with this uid.
func (r *Root) IsOfAnother(uid string, key manifests.Key) bool {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	c := r.stored.byUID[uid]
	return c != nil && c.Key() != key
}

// Claim prevents a pod from being accepted until release is called, so that the remains of a pod
// with its uid can be removed. free is false if it was accepted.
func (r *Root) Claim(uid string) (release func(), free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Remnant(uid) == NoRemnant {
		return nil, false
	}
	if r.claimed[uid] {
		return nil, false
	}
	if r.claimed == nil {
		r.claimed = map[string]bool{}
	}
	r.claimed[uid] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.claimed, uid)
	}, true
}
