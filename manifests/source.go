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

// SourceConfig configures a Source and holds what former Sources saved.
type SourceConfig struct {
	Dir string // a folder of manifests, or one manifest; "": none
	Options
	Known  []*Pod        // last good versions from checkpoints
	Rescan time.Duration // how often the folder is read without an event; 0: 20 s
	Settle time.Duration // how long a file must be gone to count as removed; 0: 200 ms
	// RemovalSettle is how long a recreated folder must have got no new file before what is missing
	// in it counts as removed; 0: 30 s.
	RemovalSettle time.Duration
	Record        Record             // as saved by the Source before
	Save          func(Record) error // saves a Record durably for the next Source; may be nil
	// KnownObjects are the ConfigMaps and Secrets as SaveObjects saved them last.
	KnownObjects []*Object
	SaveObjects  func([]*Object) error // saves all durably for the next Source; may be nil
	Boot         string                // identifies this boot
	Log          *slog.Logger          // nil: nothing is logged
	Fault        func()                // called for each panic while decoding a file; may be nil

	URL        string             // gives manifests, too; "": none. It may hold secrets: see URLName
	Answers    <-chan Answer      // the results of requesting it
	Cached     *Answer            // as it was saved last; nil: none
	SaveAnswer func(Answer) error // saves one durably for the next Source; may be nil

	Layer *Layer // the folder's place among several; nil: it is the only one

	Strict    bool   // what Writable finds is a warning
	Root      string // the agent's root dir, for that; "": none
	Unwatched bool   // the folder is read at intervals, without a watch
	// Hints are events about changes in the folder and replace a watch; nil: the Source sets one.
	Hints <-chan fsnotify.Event

	// Doubt: the last good versions must not be started unchecked, as the agent may have died of
	// one. The first snapshot then waits until each file was read and the absence of each missing
	// pod is certain, or the folder could not be read. It may be set until Run is called.
	Doubt bool
}

// Source turns a folder, and the answers of a URL, into snapshots. All fields but the channels
// belong to the goroutine in Run.
type Source struct {
	SourceConfig
	snapshots chan Snapshot
	watch     watch
	asking    *asking

	started time.Time             // when the first step was
	current map[Key]*Pod          // the desired pods, as last resolved
	files   map[string]*fileState // the existing manifests, by path
	absent  map[Key]*absence      // desired pods that their files no longer give
	objects map[ObjectKey]*Object // the ConfigMaps and Secrets, as last resolved

	resolution *resolution // that of the present step; empty between them
	turn       int         // counts the steps in which something could have been first given; see Record.Came

	objectsGone   map[ObjectKey]*absence // objects that their files no longer give
	savedObjects  []*Object              // as saved last
	saveObjectsAt time.Time              // when to retry a failed save; zero: none failed

	folder  []decode.Problem // why the folder cannot be read; none: it was, completely
	here    *Folder          // the folder that was read last; nil: none yet
	filled  time.Time        // when the last new file came into a recreated folder; zero: it was not recreated, or is complete by now
	doubted []decode.Problem // why it proves no removal; none: it does
	openTo  []decode.Problem // write access of other users to it and to the folders above it
	inside  []decode.Problem // a note about the folders in it; without a folder, that files gave objects
	odd     map[string]bool  // paths that are named like manifests and lead to no file: whether to a folder
	record  Record
	saved   Record    // as it was saved last
	saveAt  time.Time // when to retry a failed save; zero: none failed
	keepAt  time.Time // the same of unsaved
	forgets chan forgetting
	outside chan Outside            // the newest that was not received
	around  Outside                 // as received last
	masking masking                 // the files of other folders that those of this one mask
	masked  []*File                 // its files that other folders mask
	signer  string                  // of the URL's last complete answer
	urlName string                  // the name of URL in reports; its state is in files under this name
	unsaved *Answer                 // its last answer, which could not be saved; nil: it is
	dirty   map[string]bool         // paths to read again
	full    bool                    // the whole folder must be read
	nextAll time.Time               // when it must be read anyway
	last    *Snapshot               // as last offered
	said    map[decode.Problem]bool // the problems that were logged
}

// absence is how long a pod or object has been gone from its file.
type absence struct {
	went   time.Time // when it was first missed
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
		odd:          map[string]bool{},
		dirty:        map[string]bool{},
		objects:      map[ObjectKey]*Object{},
		objectsGone:  map[ObjectKey]*absence{},
		full:         true,
		forgets:      make(chan forgetting),
		outside:      make(chan Outside, 1),
	}
	s.resolution = newResolution(s)
	s.know(c.Known, c.Record)
	s.knowMasks()
	s.knowURL()
	s.knowObjects()
	return s
}

// Snapshots delivers the desired pods. Its one slot holds the newest snapshot, which replaces an
// older one that was not received.
func (s *Source) Snapshots() <-chan Snapshot { return s.snapshots }

// SetDoubt sets Doubt. It may be called until Run is.
func (s *Source) SetDoubt(doubt bool) { s.Doubt = doubt }

// leastPause is the least time between two steps without an event: what was due was just done.
const leastPause = 5 * time.Millisecond

// Run reads the folder until ctx ends. It may be called once.
func (s *Source) Run(ctx context.Context) {
	defer func() { s.watch.close() }()
	s.takeOutside()
	s.asking.stop = ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.step(time.Now())
		timer.Reset(max(time.Until(s.wake()), leastPause))
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
		case o := <-s.outside:
			s.surround(o)
		case <-s.asking.woken:
			s.full = true
		case <-timer.C:
		}
	}
}

// note records what to read again after an event.
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

// hasLinks reports whether a manifest is a symlink: then any name in the folder may be its target,
// such as ..data of a mounted ConfigMap.
func (s *Source) hasLinks() bool {
	for _, f := range s.files {
		if f.link {
			return true
		}
	}
	return false
}

// drain handles the events that have arrived already, so that a burst of files becomes one
// snapshot. It does not wait for more.
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

// step reads what may have changed, and offers the resulting snapshot.
func (s *Source) step(now time.Time) {
	if s.started.IsZero() {
		s.started = now
	}
	s.asking.hangs = false
	for path, f := range s.files {
		if at := s.retryAt(f); !at.IsZero() && !now.Before(at) {
			s.dirty[path] = true
		}
	}
	if s.full || !now.Before(s.nextAll) || s.absenceDue(now) || s.isFilled(now) || len(s.dirty) > 0 && s.moved() {
		s.scan(now)
	} else if len(s.folder) == 0 && s.Dir != "" {
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
	s.remember(now) // before the snapshot takes effect
	s.rememberObjects(now)
	s.rememberAnswer(now)
	s.offer(next)
}

// doubtMost is the longest wait for the first snapshot, in units of Settle: a manifest that is
// written all the time does not keep other pods from starting.
const doubtMost = 10

// inDoubt reports whether the first snapshot has to wait: the next pass, which comes soon, may show
// that a last good version is no longer desired.
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
		if f.pending && !IsURL(path) { // a URL's server may never answer
			return true
		}
	}
	return false
}

// absenceDue reports whether a pod has been gone long enough for a pass to prove it.
func (s *Source) absenceDue(now time.Time) bool {
	for a := range s.absences() {
		if !a.proven && !now.Before(s.provenAt(a)) {
			return true
		}
	}
	return false
}

// retryAt returns when a file is to be read again by itself; zero: with the folder, as all files are
// while the folder cannot be read.
func (s *Source) retryAt(f *fileState) time.Time {
	if len(s.folder) > 0 {
		return time.Time{}
	}
	return f.retry
}

// wake returns when the next step is due if no event comes before.
func (s *Source) wake() time.Time {
	next := s.nextAll
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, f := range s.files {
		if at := s.retryAt(f); !at.IsZero() {
			sooner(at)
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
	s.Layer.tell()
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
