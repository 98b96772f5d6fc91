package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/patient"
)

// The file system is asked by goroutines that may hang, one for each path, as a link in the
// folder may lead to a server that is gone: nothing else waits for that.
const (
	// patience is how long a first answer is waited for in one step, and impatience each other
	// one once there was none. What comes later counts with the next step.
	patience   = 2 * time.Second
	impatience = 20 * time.Millisecond
	// mostHanging bounds the threads that hang, for each kind of question.
	mostHanging = 128
)

// asking are the questions to the file system.
type asking struct {
	folder  patient.Calls[listing]
	moved   patient.Calls[bool]
	entries patient.Calls[entry]
	whole   patient.Calls[[]entry] // of all that the folder lists
	sights  patient.Calls[sight]
	links   patient.Calls[sight] // of what links lead to: however many hang, files are read
	paths   patient.Calls[[]string]
	ways    patient.Calls[[]decode.Problem]

	looks int             // at all that the folder lists, which number them
	room  []entry         // for the next one; nil: the last one has not ended
	woken chan struct{}   // an answer came late
	stop  <-chan struct{} // closed when none is waited for any more; nil: never
	hangs bool            // an answer did not come in this step
	asked map[string]bool // keys of entries and sights in this look through the folder
}

func newAsking() *asking {
	a := &asking{woken: make(chan struct{}, 1), asked: map[string]bool{}}
	late := func() {
		select {
		case a.woken <- struct{}{}:
		default:
		}
	}
	a.folder = patient.Calls[listing]{Most: 1, Late: late}
	a.moved = patient.Calls[bool]{Most: 1, Late: late}
	a.entries = patient.Calls[entry]{Most: mostHanging, Late: late}
	a.whole = patient.Calls[[]entry]{Most: 1}
	a.sights = patient.Calls[sight]{Most: mostHanging, Late: late}
	a.links = patient.Calls[sight]{Most: mostHanging, Late: late}
	a.paths = patient.Calls[[]string]{Most: 1}
	a.ways = patient.Calls[[]decode.Problem]{Most: mostHanging}
	return a
}

// isStopped reports whether no answer is waited for any more: what came of a question then
// says nothing.
func (a *asking) isStopped() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// ask asks one question with the patience that is left in this step.
func ask[T any](a *asking, calls *patient.Calls[T], key string, do func() T) (T, error) {
	wait := patience
	if a.hangs {
		wait = impatience
	}
	begin := time.Now()
	answer, err := calls.Ask(key, wait, a.stop, do)
	a.hangs = a.hangs || err != nil && time.Since(begin) >= wait
	a.asked[key] = true
	return answer, err
}

// dropLate drops late answers about what is not in the folder any more.
func (a *asking) dropLate() {
	a.entries.Keep(a.asked)
	a.sights.Keep(a.asked)
	a.links.Keep(a.asked)
}

// entry is what is in the folder under one name.
type entry struct {
	isLink   bool
	isFile   bool             // a regular one
	mode     fs.FileMode      // its permissions
	sig      signature        // not of what a link leads to
	writable []decode.Problem // of a regular file, if strict
	err      error            // why it is not known
}

// lookUp looks up a path. isStrict: who may write it is looked at, too, with this root dir.
func lookUp(path string, isStrict bool, root string) entry {
	var st syscall.Stat_t
	err := lstat(path, &st)
	if err != nil {
		return entry{err: err}
	}
	kind := st.Mode & syscall.S_IFMT
	e := entry{isLink: kind == syscall.S_IFLNK, isFile: kind == syscall.S_IFREG, mode: fs.FileMode(st.Mode).Perm(), sig: signatureIn(&st)}
	if isStrict && e.isFile && mayWrite(e.mode, st.Uid) {
		e.writable = writableFile(path, root, false)
	}
	return e
}

// lookUpAll looks up the paths that the folder lists by one question, as nearly all files are as they
// were; nil: one of them may hang, so that each is to be asked for by itself. An answer that comes
// late is of no use: by then another look has started.
func (s *Source) lookUpAll(paths []string) []entry {
	s.asking.whole.Keep(nil)
	s.asking.looks++
	isStrict, root, room := s.Strict, s.Root, s.asking.room
	s.asking.room = nil // until it is known that the question has ended
	all, err := ask(s.asking, &s.asking.whole, strconv.Itoa(s.asking.looks), func() []entry {
		all := slices.Grow(room[:0], len(paths))
		for _, path := range paths {
			all = append(all, lookUp(path, isStrict, root))
		}
		return all
	})
	if err != nil {
		return nil
	}
	return all
}

// wish is how a path is to be looked at.
type wish struct {
	isLink   bool
	entry    signature // what is in the folder under its name
	known    signature // of the version that need not be read again; zero: none
	insist   bool      // a file that is open for writing is read, too
	isStrict bool      // who may write it is looked at, with this root dir
	root     string
}

// sight is one look at a path.
type sight struct {
	wish
	mode     fs.FileMode // of what the path leads to
	isKnown  bool        // it is the known version, and was not read
	reading  reading
	err      error // why it could not be read
	writable []decode.Problem
}

// see looks at a path. What is no regular file is not even opened: a pipe's writer would notice.
func see(path string, w wish) sight {
	v := sight{wish: w}
	if w.isStrict {
		v.writable = writableFile(path, w.root, w.isLink)
	}
	info, err := os.Stat(path)
	if err != nil {
		v.err = err
		return v
	}
	v.mode = info.Mode()
	switch {
	case !v.mode.IsRegular():
		v.err = errIrregular
	case w.known == signatureOf(info):
		v.isKnown = true
	default:
		v.reading, v.err = readManifest(path, w.insist)
	}
	return v
}

// look updates the state of one path. force reads it even if it looks the same.
func (s *Source) look(path string, now time.Time, force bool) {
	if path != s.Dir && (!isManifest(filepath.Base(path)) || filepath.Dir(path) != s.Dir) {
		return
	}
	isStrict, root := s.Strict, s.Root
	e, err := ask(s.asking, &s.asking.entries, path, func() entry { return lookUp(path, isStrict, root) })
	if err != nil {
		e = entry{err: err}
	}
	s.takeEntry(path, &e, now, force)
}

// takeEntry is look once it is known what is in the folder under the name. A regular file that is as
// it was read last need not be asked for.
func (s *Source) takeEntry(path string, e *entry, now time.Time, force bool) {
	if errors.Is(e.err, fs.ErrNotExist) {
		delete(s.files, path)
		return
	}
	if e.err != nil {
		s.fileAt(path, now).fail(path, e.err, signature{}, now)
		return
	}
	w := s.wishFor(s.files[path], now, force)
	w.isLink, w.entry = e.isLink, e.sig
	if e.isFile && w.known == e.sig {
		s.takeSight(path, sight{wish: w, mode: e.mode, isKnown: true, writable: e.writable}, now)
		return
	}
	s.takeSight(path, s.see(path, w), now)
}

// see asks for a look at a path.
func (s *Source) see(path string, w wish) sight {
	// Another link or file of the name is asked for though the former hangs.
	key := fmt.Sprintf("%s %d %d %d", path, w.entry.dev, w.entry.ino, w.entry.ctime)
	calls := &s.asking.sights
	if w.isLink {
		calls = &s.asking.links
	}
	v, err := ask(s.asking, calls, key, func() sight { return see(path, w) })
	if err != nil {
		return sight{wish: w, err: err}
	}
	return v
}

// wishFor is how a path with this state is to be looked at; nil: it has none.
func (s *Source) wishFor(f *fileState, now time.Time, force bool) wish {
	w := wish{isStrict: s.Strict, root: s.Root}
	if f == nil {
		return w
	}
	w.insist = f.insists(now, s.Settle)
	if !force && f.retry.IsZero() {
		w.known = f.sig
	}
	return w
}

// takeSight takes over what a look at a path came to.
func (s *Source) takeSight(path string, v sight, now time.Time) {
	if errors.Is(v.err, errIrregular) && !s.gave(path) || errors.Is(v.err, fs.ErrNotExist) && !v.isLink {
		delete(s.files, path)
		return
	}
	f := s.fileAt(path, now)
	f.link, f.writable = v.isLink, v.writable
	if v.err == nil || v.mode != 0 {
		f.mode = v.mode.Perm()
	}
	switch {
	case v.err != nil:
		f.fail(path, v.err, v.entry, now)
	case v.isKnown && f.sig != v.known: // the answer is late: the state does not have that version any more
		f.retry = now
	case !v.isKnown:
		s.takeReading(path, f, v.reading, v.insist, now)
	}
}

// fileAt returns the state of a path, a new one if there was none.
func (s *Source) fileAt(path string, now time.Time) *fileState {
	f := s.files[path]
	if f == nil {
		f = &fileState{pending: true}
		s.recallUnclear(path, f)
		s.files[path] = f
		s.grows(now)
	}
	return f
}
