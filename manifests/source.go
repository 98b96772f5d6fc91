package manifests

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"monopod/manifests/decode"
)

// SourceConfig says what a Source reads and what it knows already.
type SourceConfig struct {
	Dir string // a folder of manifests, or one manifest; "": none
	Options
	Known  []*Pod        // last good versions from checkpoints
	Rescan time.Duration // how often the folder is looked through without a hint; 0: 20 s
	Settle time.Duration // how long a file must be gone to count as removed; 0: 200 ms
	// RemovalSettle is how long a folder that was made again must have got no new file before what is
	// missing in it counts as removed; 0: 30 s.
	RemovalSettle time.Duration
	Record        Record             // as saved by the Source before
	Save          func(Record) error // saves a Record durably for the next Source; may be nil
	// KnownObjects are the ConfigMaps and Secrets as SaveObjects saved them last.
	KnownObjects []*Object
	SaveObjects  func([]*Object) error // saves all durably for the next Source; may be nil
	Boot         string                // names this run of the kernel
	Log          *slog.Logger          // nil: silent
	Fault        func()                // called for each panic over a file; may be nil

	URL        string             // gives manifests, too; "": none. It may hold secrets: see URLName
	Answers    <-chan Answer      // what comes of asking it
	Cached     *Answer            // as it was saved last; nil: none
	SaveAnswer func(Answer) error // saves one durably for the next Source; may be nil

	Strict    bool   // what Writable finds is a warning
	Root      string // the agent's root dir, for that; "": none
	Unwatched bool   // the folder is looked through now and then, and tells of no change
	// Hints are of changes in the folder, in the place of a watch that tells of them; nil: a watch does.
	Hints <-chan fsnotify.Event

	// Doubt: what the last good versions come to is not trusted, as the agent may
	// have died of one. The first snapshot then waits until each file was read and
	// the absence of each that is gone is certain, or the folder could not be read.
	// It may be set until Run is called.
	Doubt bool
}

// Source turns a folder, and the answers of a URL, into snapshots. All but the channel belongs to the
// goroutine in Run.
type Source struct {
	SourceConfig
	snapshots chan Snapshot
	watch     watch
	asking    *asking

	started time.Time             // when the first step was
	current map[Key]*Pod          // the desired pods, as last resolved
	files   map[string]*fileState // the manifests that are there, by path
	absent  map[Key]*absence      // desired pods that their files do not give any more
	objects map[ObjectKey]*Object // the ConfigMaps and Secrets, as last resolved

	resolution *resolution // that of the present step; empty between them

	objectsGone   map[ObjectKey]*absence // those that their files do not give any more
	savedObjects  []*Object              // as saved last
	saveObjectsAt time.Time              // when a save that failed is tried again; zero: none did

	folder  []decode.Problem // why the folder cannot be read; none: it was, completely
	here    *Folder          // that was read last; nil: none yet
	filled  time.Time        // when the last new file came into a folder that was made again; zero: it was not, or is complete by now
	doubted []decode.Problem // why it proves no removal; none: it does
	openTo  []decode.Problem // what others may write of it, and of the way to it
	inside  []decode.Problem // a note about the folders in it
	record  Record
	saved   Record    // as it was saved last
	saveAt  time.Time // when a save that failed is tried again; zero: none did
	forgets chan forgetting
	urlName string                  // what URL is called; its state is in files under this name
	unsaved bool                    // its last answer is
	dirty   map[string]bool         // paths to look at again
	full    bool                    // the whole folder must be looked through
	nextAll time.Time               // when it must be anyway
	last    *Snapshot               // as last offered
	said    map[decode.Problem]bool // what was logged
}

// absence is how long a pod has been gone from its file.
type absence struct {
	went   time.Time // when it was missed first
	since  time.Time // the same, or when a new file came
	proven bool      // still gone after Settle, in a folder that was read completely
}

// NewSource returns a Source that does nothing before Run.
func NewSource(c SourceConfig) *Source {
	if abs, err := filepath.Abs(c.Dir); err == nil && c.Dir != "" {
		c.Dir = abs
	}
	if c.Rescan <= 0 {
		c.Rescan = 20 * time.Second
	}
	if c.Settle <= 0 {
		c.Settle = 200 * time.Millisecond
	}
	if c.RemovalSettle <= 0 {
		c.RemovalSettle = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		SourceConfig: c,
		snapshots:    make(chan Snapshot, 1),
		asking:       newAsking(),
		current:      map[Key]*Pod{},
		files:        map[string]*fileState{},
		absent:       map[Key]*absence{},
		dirty:        map[string]bool{},
		objects:      map[ObjectKey]*Object{},
		objectsGone:  map[ObjectKey]*absence{},
		full:         true,
		forgets:      make(chan forgetting),
	}
	s.resolution = newResolution(s)
	s.know(c.Known, c.Record)
	s.knowURL()
	s.knowObjects()
	return s
}

// Snapshots delivers the desired pods. Its one slot holds the newest snapshot; an
// older one that was not received is replaced.
func (s *Source) Snapshots() <-chan Snapshot { return s.snapshots }

// Run reads the folder until ctx ends. It may be called once.
func (s *Source) Run(ctx context.Context) {
	defer func() { s.watch.close() }()
	s.asking.stop = ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.step(time.Now())
		timer.Reset(time.Until(s.wake()))
		select {
		case <-ctx.Done():
			return
		case e, ok := <-s.watch.events():
			s.note(e, ok)
			s.drain()
		case e, ok := <-s.Hints:
			s.note(e, ok)
		case <-s.watch.errors(): // events were lost
			s.full = true
		case a := <-s.Answers:
			s.answered(a)
		case f := <-s.forgets:
			f.answer <- f.do(time.Now())
		case <-s.asking.woken:
			s.full = true
		case <-timer.C:
		}
	}
}

// note takes an event as a hint where to look.
func (s *Source) note(e fsnotify.Event, ok bool) {
	switch {
	case !ok || e.Name == s.Dir:
		if !ok || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			s.watch.close()
		}
		s.full = true
	case s.files[e.Name] != nil || isManifest(filepath.Base(e.Name)):
		s.dirty[e.Name] = true
	default:
		s.full = s.full || s.hasLinks()
	}
}

// hasLinks reports whether a manifest is a symlink: then any name in the folder may
// be what it points to, such as ..data of a mounted ConfigMap.
func (s *Source) hasLinks() bool {
	for _, f := range s.files {
		if f.link {
			return true
		}
	}
	return false
}

// drain takes the events that are there already, so that a burst of files is
// one snapshot. It does not wait for more.
func (s *Source) drain() {
	for range 1000 {
		select {
		case e, ok := <-s.watch.events():
			s.note(e, ok)
		default:
			return
		}
	}
}

// step looks where there is need to, and offers what came of it.
func (s *Source) step(now time.Time) {
	if s.started.IsZero() {
		s.started = now
	}
	s.asking.hangs = false
	for path, f := range s.files {
		if !f.retry.IsZero() && !now.Before(f.retry) {
			s.dirty[path] = true
		}
	}
	if s.full || !now.Before(s.nextAll) || s.absenceDue(now) || s.isFilled(now) || len(s.dirty) > 0 && s.moved() {
		s.scan(now)
	} else if len(s.folder) == 0 {
		for path := range s.dirty {
			s.look(path, now, true)
		}
		s.countAbsences(now, false)
	}
	clear(s.dirty)
	if s.asking.isStopped() {
		return
	}
	s.dropURLs()
	next := s.resolve()
	if s.inDoubt(now) {
		return
	}
	s.remember(now) // before anybody acts on it
	s.rememberObjects(now)
	s.offer(next)
}

// doubtMost is how many times Settle the first snapshot waits at most: a manifest
// that is written all the time keeps no other pod from starting.
const doubtMost = 10

// inDoubt reports whether the first snapshot is to wait: the next look, which
// comes soon, may show that a last good version is not wanted any more.
func (s *Source) inDoubt(now time.Time) bool {
	if !s.Doubt || s.last != nil || len(s.folder)+len(s.doubted) > 0 || now.Sub(s.started) >= doubtMost*s.Settle {
		return false
	}
	for a := range s.absences() {
		if !a.proven {
			return true
		}
	}
	for path, f := range s.files {
		if f.pending && !IsURL(path) { // which may be dead
			return true
		}
	}
	return false
}

// absenceDue reports whether a pod has been gone long enough to make sure of it.
func (s *Source) absenceDue(now time.Time) bool {
	for a := range s.absences() {
		if !a.proven && !now.Before(s.provenAt(a)) {
			return true
		}
	}
	return false
}

// wake returns when the next step is due if nothing happens before.
func (s *Source) wake() time.Time {
	next := s.nextAll
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, f := range s.files {
		if !f.retry.IsZero() {
			sooner(f.retry)
		}
	}
	if !s.filled.IsZero() {
		sooner(s.filled.Add(s.RemovalSettle))
	}
	for a := range s.absences() {
		if !a.proven {
			sooner(s.provenAt(a))
		}
	}
	return next
}

// offer puts a snapshot into the slot if it differs from the last one.
func (s *Source) offer(next Snapshot) {
	if s.last != nil && equal(*s.last, next) {
		return
	}
	s.last = &next
	s.say(next)
	select {
	case <-s.snapshots:
	default:
	}
	s.snapshots <- next // the slot is free: there is no other sender
}

// say logs each problem when it appears.
func (s *Source) say(next Snapshot) {
	said := map[decode.Problem]bool{}
	all := slices.Clone(next.Problems)
	for _, f := range next.Files {
		all = append(all, f.Problems...)
	}
	for _, p := range all {
		if !s.said[p] && !said[p] {
			s.Log.Warn("manifest problem", "pod", p.Pod, "err", p)
		}
		said[p] = true
	}
	s.said = said
}
