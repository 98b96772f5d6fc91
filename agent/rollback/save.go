package rollback

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/update"
	"monopod/manifests"
)

// Save is a record that is written to disk beside the sync loop.
type Save struct {
	Key manifests.Key
	Err error

	record    *checkpoint.Update // nil: it is removed
	former    *manifests.Pod     // whose images are to be found out; nil: they are known
	changes   int
	unwatched bool // that pod never ran
}

// Start returns the records that are to be saved now: none while others are. After
// Do, Done must be called with them.
func (b *Book) Start() []*Save {
	if b.saving || len(b.unsaved) == 0 {
		return nil
	}
	var all []*Save
	for key := range b.unsaved {
		s := &Save{Key: key}
		if r := b.all[key]; r != nil {
			s.changes = r.changes
			s.record = &checkpoint.Update{Former: r.former.Pod, File: r.former.File, Bounded: !r.former.Unbounded, Images: r.images,
				Reason: r.reason, Boot: b.boot, Spent: r.watch.SpentAt(b.looked)}
			if r.tried != nil {
				s.record.Tried = r.tried.Pod
			}
			if r.pinned == nil {
				s.former = r.former
			}
		}
		all = append(all, s)
	}
	clear(b.unsaved)
	b.saving = true
	return all
}

// Do saves the record. reported returns what was last reported of the pod. It may be
// called by any goroutine.
func (s *Save) Do(root *checkpoint.Root, reported func() *v1.Pod) {
	if s.former != nil {
		var all bool
		if p := reported(); p != nil && p.UID == s.former.UID {
			s.record.Images = update.ImagesOf(&p.Status)
			_, all = update.Pin(s.former.Pod, s.record.Images)
		}
		if s.unwatched = !all; s.unwatched {
			s.record = nil
		}
	}
	s.Err = root.SaveUpdate(s.Key, s.record)
}

// Done takes over what was saved. changed: other versions may be chosen now. It returns
// what to tell of those that are rolled back.
func (b *Book) Done(all []*Save) (back []Back, changed bool) {
	b.saving = false
	for _, s := range all {
		r := b.all[s.Key]
		if s.Err != nil {
			b.failed[s.Key] = true
		}
		if r == nil || r.changes != s.changes {
			continue
		}
		r.stuck = ""
		if s.Err != nil {
			if r.tried != nil && !r.kept {
				r.stuck = s.Err.Error()
			}
			continue
		}
		if s.former != nil && !s.unwatched {
			r.images = s.record.Images
		}
		if s.former != nil {
			r.unwatched = s.unwatched || !r.pin()
		}
		if !r.kept && r.reason != "" {
			back = append(back, Back{r.tried, r.event()})
		}
		changed = changed || !r.kept
		r.kept = true
	}
	return back, changed
}

// Back is a version that is rolled back, and what to tell of it.
type Back struct {
	Tried *manifests.Pod
	Text  string
}
