// Package rollback chooses between the version of a pod that its manifest gives and the
// former one, which comes back if the new one does not become or stay ready.
package rollback

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/update"
	"monopod/manifests"
)

// Book has the updates that are watched or were rolled back, by pod name. An update is
// known by the digest of its manifest: uids, files and times do not count. The sync
// loop's goroutine owns it.
//
// What counts as the former version is the last one that was not in doubt: one that ran
// before it was watched at all, or one that was found healthy. A version that waits to
// start, or is watched, is not yet one to go back to.
type Book struct {
	Wake   *time.Timer                 // fires when Look must be called
	Limits func(*v1.Pod) update.Limits // what is asked of a version; nil: nothing

	boot    string
	all     map[manifests.Key]*rollback
	unsaved map[manifests.Key]bool // whose records are not as they are on disk
	failed  map[manifests.Key]bool // which the disk did not take, and takes later perhaps
	saving  bool
	looked  time.Time // when Look was called last
}

// rollback is the update of one pod name.
type rollback struct {
	former    *manifests.Pod // as it was accepted
	images    map[string]string
	pinned    *manifests.Pod // former with the images that it ran; nil: not known yet
	tried     *manifests.Pod // nil: the manifest is again that of former
	reason    string         // why tried was rolled back; "": it was not
	kept      bool           // all that is on disk
	unwatched bool           // former never ran: tried has nothing to go back to
	changes   int            // so far: what was saved earlier is not what is
	stuck     string         // why tried may not start: its record is not saved; "": it is, or will be

	watch  update.Watch
	health update.Health
}

// New returns the book as previous agents left it. Pods get the defaults and digests of
// this build. A boot other than that of a record restarts its watch: what a reboot does
// to a pod is not the fault of its version.
func New(boot string, all []*checkpoint.Update) *Book {
	b := &Book{Wake: time.NewTimer(time.Hour), boot: boot, all: map[manifests.Key]*rollback{}, unsaved: map[manifests.Key]bool{}, failed: map[manifests.Key]bool{}}
	b.Wake.Stop()
	for _, u := range all {
		r := &rollback{former: accepted(u.Former, u.File), images: u.Images, reason: u.Reason, kept: true}
		r.former.Unbounded = !u.Bounded
		if u.Tried != nil {
			r.tried = accepted(u.Tried, u.File)
		}
		if u.Boot == boot {
			r.watch.Spent = u.Spent
		}
		if r.pin() {
			b.all[r.former.Key()] = r
		}
	}
	return b
}

func accepted(p *v1.Pod, file string) *manifests.Pod {
	return &manifests.Pod{Pod: p, File: file, Digest: manifests.Restored(p)}
}

// pin makes the version that comes back. It keeps the uid of the former one, of which
// nothing is left when it starts: a worker runs one instance at a time. It reports
// whether the former version ran at all.
func (r *rollback) pin() bool {
	p, all := update.Pin(r.former.Pod, r.images)
	if all {
		p.Status = v1.PodStatus{Phase: v1.PodPending}
		r.pinned = accepted(p, r.former.File)
		r.pinned.Unbounded = r.former.Unbounded
	}
	return all
}

// Pods are what is known of a pod name.
type Pods struct {
	New   *manifests.Pod            // as its manifest says
	Given *manifests.Pod            // as Choose said last; nil: it was not asked since the agent started
	Runs  *manifests.Pod            // the version that was admitted last and has not ended; nil: none
	Held  func(*manifests.Pod) bool // whether New is not what the file says, which has an error
}

// Choose returns the version that is to run: New, unless that was rolled back or its
// record is not saved yet.
func (b *Book) Choose(p Pods) *manifests.Pod {
	key := p.New.Key()
	r := b.all[key]
	switch {
	case r == nil || r.unwatched && r.tried.Digest != p.New.Digest:
		return b.consider(key, p)
	case r.tried != nil && r.tried.Digest == p.New.Digest:
		return b.tried(r, p)
	case r.pinned != nil && r.pinned.Digest == p.New.Digest && (r.former.Digest != p.New.Digest || p.Held(p.New)):
		return r.in(p.New.File) // from its checkpoint: what the file says is not known
	case r.former.Digest == p.New.Digest:
		return b.returned(key, r, p)
	case b.limits(p.New).Within == 0:
		b.drop(key)
		return p.New
	}
	r.tried, r.reason, r.stuck, r.watch, r.health, r.kept = p.New, "", "", update.Watch{}, update.Health{}, false
	b.changed(key)
	return p.meanwhile()
}

func (b *Book) limits(p *manifests.Pod) update.Limits {
	if b.Limits == nil {
		return update.Limits{}
	}
	return b.Limits(p.Pod)
}

// consider begins with an update, if it is one whose health matters.
func (b *Book) consider(key manifests.Key, p Pods) *manifests.Pod {
	if p.Given != nil && p.Given.Digest == p.New.Digest || p.Runs == nil || p.Runs.Digest == p.New.Digest || b.limits(p.New).Within == 0 {
		return p.New
	}
	b.all[key] = &rollback{former: p.Runs, tried: p.New}
	b.changed(key)
	return p.meanwhile()
}

// meanwhile is what runs on until the record is saved.
func (p Pods) meanwhile() *manifests.Pod {
	switch {
	case p.Given != nil:
		return p.Given
	case p.Runs != nil:
		return p.Runs
	}
	return p.New
}

// tried chooses for an update that is known.
func (b *Book) tried(r *rollback, p Pods) *manifests.Pod {
	r.tried = p.New
	switch {
	case r.unwatched || r.reason != "" && !r.kept:
		return p.New
	case r.reason != "":
		return r.in(p.New.File)
	case !r.kept:
		return p.meanwhile()
	}
	return p.New
}

// in returns the version that comes back as one of a file.
func (r *rollback) in(file string) *manifests.Pod {
	if r.pinned.File != file {
		p := *r.pinned
		p.File = file
		r.pinned = &p
	}
	return r.pinned
}

// returned chooses for a manifest that is again that of the former version: if that does
// not run on, it comes back with the images that it ran. What was tried is forgotten, and
// is tried again if the manifest gives it again.
func (b *Book) returned(key manifests.Key, r *rollback, p Pods) *manifests.Pod {
	if r.pinned == nil || p.Runs != nil && p.Runs.Digest == p.New.Digest && p.Runs.UID == r.former.UID {
		b.drop(key)
		return p.New
	}
	if r.tried != nil {
		renewed := *r.pinned // another object: it is told to be no longer in place of another
		r.tried, r.reason, r.stuck, r.pinned = nil, "", "", &renewed
		b.changed(key)
	}
	return r.in(p.New.File)
}

// Forget drops the updates of pods that are not desired.
func (b *Book) Forget(desired func(manifests.Key) bool) {
	for key := range b.all {
		if !desired(key) {
			b.drop(key)
		}
	}
}

func (b *Book) drop(key manifests.Key) {
	delete(b.all, key)
	b.unsaved[key] = true
}

// changed says that the record of a pod name is to be saved.
func (b *Book) changed(key manifests.Key) {
	b.all[key].changes++
	b.unsaved[key] = true
}

// Former returns the version of a pod name that may come back; nil: there is none.
func (b *Book) Former(key manifests.Key) *manifests.Pod {
	if r := b.all[key]; r != nil {
		return r.pinned
	}
	return nil
}

// Formers returns the versions that may come back: their images must stay.
func (b *Book) Formers() []*manifests.Pod {
	var all []*manifests.Pod
	for _, r := range b.all {
		if r.pinned != nil {
			all = append(all, r.pinned)
		}
	}
	return all
}
