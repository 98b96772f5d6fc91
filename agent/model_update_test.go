package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
	"monopod/manifests"
)

// succession watches that no pod is stopped before its successor can run.
type succession struct {
	mu     sync.Mutex
	offers map[manifests.Key][]*manifests.Pod // of each name, the latest last; nil: it was removed
	gone   map[manifests.Key]time.Time        // when it was removed last
	asked  map[string]bool                    // uids whose removal was looked at
	foul   string
	absent []string                    // images that cannot be pulled for a while
	made   int                         // images that were named so far
	shut   time.Time                   // since when the update window is; zero: it is open
	locked map[types.UID]time.Time     // since when pods have locked themselves, if they still do
	stops  map[manifests.Key]time.Time // when the owner stopped it last
	backs  map[manifests.Key]*wayBack  // the last rollback by request
}

// wayBack is a rollback by request.
type wayBack struct {
	from        string // the digest of the version that gives way
	asked, over time.Time
}

// askedBack records that the owner asks for the version before one.
func (s *succession) askedBack(key manifests.Key, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backs[key] = &wayBack{from: from, asked: time.Now()}
}

// givesWay reports whether an instance gave way by request when its removal was recorded, which is
// known to the second. s.mu is held.
func (s *succession) givesWay(key manifests.Key, record *checkpoint.Checkpoint) bool {
	b, went := s.backs[key], record.Pod.DeletionTimestamp
	return b != nil && b.from == record.Digest && !went.Time.Before(b.asked.Truncate(time.Second)) && (b.over.IsZero() || !went.After(b.over))
}

// stop records that the owner has stopped a pod.
func (s *succession) stop(key manifests.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops[key] = time.Now()
}

// isOwners reports whether a container ran when the owner stopped its pod: that ends it, also
// where its grace lasts until another version takes its place, since the pod was started again.
// s.mu is held.
func (s *succession) isOwners(key manifests.Key, c critest.Container) bool {
	at, ever := s.stops[key]
	return ever && !c.Started.After(at)
}

// offer records what an agent is told.
func (s *succession) offer(now map[manifests.Key]*manifests.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, all := range s.offers {
		if now[key] == nil && all[len(all)-1] != nil {
			s.offers[key] = append(all, nil)
			s.gone[key] = time.Now()
		}
	}
	for key, p := range now {
		s.offers[key] = append(s.offers[key], p)
	}
	for key, b := range s.backs {
		if b.over.IsZero() && (now[key] == nil || now[key].Digest != b.from) {
			b.over = time.Now()
		}
	}
}

// watchStops is called before each call of the agent. A container that is stopped because
// its pod is to go must have had a successor with all images, or none at all.
func (w *walk) watchStops(args any) {
	q, stops := args.(*rt.StopContainerRequest)
	if !stops {
		return
	}
	c, there := w.Container(q.ContainerId)
	if !there || c.Namespace == strangers || c.Started.IsZero() { // one that never ran needs no successor
		return
	}
	key := manifests.Key{Namespace: c.Namespace, Name: c.Pod}
	record := w.recordOf(c.UID)
	s := w.succession
	s.mu.Lock()
	defer s.mu.Unlock()
	if record == nil || !record.IsRemoving() || s.asked[c.UID+record.Digest] {
		return
	}
	s.asked[c.UID+record.Digest] = true
	all := s.offers[key]
	began := -1
	for k, p := range all {
		if p != nil && p.Digest == record.Digest && (string(p.UID) == c.UID || record.Revision > 0) {
			began = k
		}
	}
	if began < 0 || began == len(all)-1 {
		return
	}
	since := began // of the same version, offered again and again
	for since > 0 && all[since-1] != nil && all[since-1].Digest == record.Digest {
		since--
	}
	if since > 0 && all[since-1] == nil && record.Accepted.Time.Before(s.gone[key]) {
		return // it goes because it was gone; that it was put back came too late
	}
	if s.givesWay(key, record) {
		return
	}
	_, isStopped := w.sync.holds.State().Stopped[key.String()]
	isStopped = isStopped || s.isOwners(key, c)
	if why := w.heldSince(key, record.Pod.DeletionTimestamp.Time); why != "" && !isStopped {
		s.foul = fmt.Sprintf("%s/%s is stopped though %s", key, c.Name, why)
		return
	}
	if !isStopped && !slices.Contains(all[began+1:], nil) {
		if !s.shut.IsZero() && record.Pod.DeletionTimestamp.Sub(s.shut) > 2*time.Second {
			s.foul = fmt.Sprintf("%s/%s is stopped though the update window is shut", key, c.Name)
			return
		}
		if why := w.lockedSince(record.Pod, record.Pod.DeletionTimestamp.Time); why != "" {
			s.foul = fmt.Sprintf("%s/%s is stopped though %s", key, c.Name, why)
			return
		}
	}
	for _, p := range all[began+1:] {
		if p == nil || !slices.ContainsFunc(p.Spec.Containers, func(c v1.Container) bool { return !w.has(c.Image) }) {
			return
		}
	}
	s.foul = fmt.Sprintf("%s/%s is stopped, and no image of a successor is there", key, c.Name)
}

// has reports whether the runtime has an image.
func (w *walk) has(image string) bool {
	return slices.ContainsFunc(w.Images(), func(ref string) bool { return filepath.Base(ref) == image })
}

// early returns what was stopped before its successor could run.
func (w *walk) early() string {
	w.succession.mu.Lock()
	defer w.succession.mu.Unlock()
	return w.succession.foul
}

// awaitImage edits a manifest to an image that cannot be pulled for a while.
func (w *walk) awaitImage() string {
	name := pick(w.rand, modelPods...)
	old, there := w.wishes[name]
	if !there {
		return ""
	}
	s := w.succession
	s.made++
	old.image = fmt.Sprintf("img:%d", 100+s.made)
	s.absent = append(s.absent, old.image)
	w.OnPull(old.image, 0, errors.New("no route to host"))
	w.wishes[name] = old
	w.deliver()
	return fmt.Sprintf("%s: image %s, which cannot be pulled", name, old.image)
}

// bringImage lets one of those images be pulled.
func (w *walk) bringImage() string {
	s := w.succession
	if len(s.absent) == 0 {
		return ""
	}
	image := s.absent[0]
	s.absent = s.absent[1:]
	w.OnPull(image, 0, nil)
	return image + " can be pulled"
}

// bringAll lets all of them be pulled.
func (w *walk) bringAll() {
	for w.bringImage() != "" {
	}
}
