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

// Goroutines that may hang make the calls to the file system, one for each path, as a link in the
// folder may lead to a server that is gone: nothing else waits for that.
const (
	// patience is how long one step waits for the first missing answer, and impatience for each
	// further one. Later answers count in the next step.
	patience   = 2 * time.Second
	impatience = 20 * time.Millisecond
	// mostHanging bounds the number of hanging threads for each kind of call.
	mostHanging = 128
)

// asking holds the calls to the file system.
type asking struct {
	folder  patient.Calls[listing]
	moved   patient.Calls[bool]
	entries patient.Calls[entry]
	whole   patient.Calls[[]entry] // of everything that the folder lists
	sights  patient.Calls[sight]
	links   patient.Calls[sight] // of what links lead to: files are read however many of these hang
	paths   patient.Calls[[]string]
	ways    patient.Calls[[]decode.Problem]

	looks int             // number of calls in whole so far, used as their keys
	room  []entry         // for the result of the next one; nil: the last one has not ended
	woken chan struct{}   // an answer came late
	stop  <-chan struct{} // closed when the Source stops; nil: never
	hangs bool            // an answer was missing in this step
	asked map[string]bool // keys of entries and sights in this pass through the folder
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

// isStopped reports whether the Source is stopping: the results of calls are then meaningless.
func (a *asking) isStopped() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// ask makes one call and waits for it as long as this step still allows.
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

// dropLate drops late answers about names that are no longer in the folder.
func (a *asking) dropLate() {
	a.entries.Keep(a.asked)
	a.sights.Keep(a.asked)
	a.links.Keep(a.asked)
}

// entry is what the folder has under one name.
type entry struct {
	isLink   bool
	isFile   bool             // a regular one
	mode     fs.FileMode      // its permissions
	sig      signature        // of the link itself, if it is one
	writable []decode.Problem // of a regular file, if strict
	err      error            // why it is not known
}

// lookUp reads the metadata of a path. With isStrict it also checks who may write the file; root is
// the agent's root dir.
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

// lookUpAll looks up the paths that the folder lists in a single call, as nearly all files are
// unchanged; nil: one of them may hang, so that each needs a call of its own. A late answer is
// dropped: by then another pass has started.
func (s *Source) lookUpAll(paths []string) []entry {
	s.asking.whole.Keep(nil)
	s.asking.looks++
	isStrict, root, room := s.Strict, s.Root, s.asking.room
	s.asking.room = nil // until the call is known to have ended
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

// wish is how a path is to be read.
type wish struct {
	isLink   bool
	entry    signature // what the folder has under its name
	known    signature // of the version that need not be read again; zero: none
	insist   bool      // a file that is open for writing is read, too
	isStrict bool      // who may write it is checked, with this root dir
	root     string
	masks    bool // a link to /dev/null is a file without content
}

// sight is the result of reading a path.
type sight struct {
	wish
	mode     fs.FileMode // of what the path leads to
	isKnown  bool        // it is the known version, and was not read
	reading  reading
	err      error // why it could not be read
	writable []decode.Problem
}

// see reads a path. What is not a regular file is not even opened: a pipe's writer would notice.
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
	case w.masks && IsNull(info):
		v.reading = reading{sig: signatureOf(info), isNull: true}
	case !v.mode.IsRegular():
		v.err = errIrregular
	case w.known == signatureOf(info):
		v.isKnown = true
	default:
		v.reading, v.err = readManifest(path, w.insist)
	}
	return v
}

// look updates the state of one path. force reads the file even if it looks unchanged.
func (s *Source) look(path string, now time.Time, force bool) {
	if path != s.Dir && (!isManifest(filepath.Base(path)) || filepath.Dir(path) != s.Dir) {
		return
	}
	if s.maskOf(path) != "" {
		delete(s.files, path)
		delete(s.odd, path)
		return
	}
	isStrict, root := s.Strict, s.Root
	e, err := ask(s.asking, &s.asking.entries, path, func() entry { return lookUp(path, isStrict, root) })
	if err != nil {
		e = entry{err: err}
	}
	s.takeEntry(path, &e, now, force)
}

// takeEntry updates the state of a path whose entry is known. A regular file that is unchanged
// since it was read needs no further call.
func (s *Source) takeEntry(path string, e *entry, now time.Time, force bool) {
	delete(s.odd, path)
	if errors.Is(e.err, fs.ErrNotExist) {
		delete(s.files, path)
		return
	}
	if e.err != nil {
		s.fail(path, s.fileAt(path, now), e.err, signature{}, now)
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

// see calls the function see for a path.
func (s *Source) see(path string, w wish) sight {
	// Another link or file of the same name gets its own call even if the former one hangs.
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

// wishFor returns how a path with this state is to be read; f is nil if it has none.
func (s *Source) wishFor(f *fileState, now time.Time, force bool) wish {
	w := wish{isStrict: s.Strict, root: s.Root, masks: s.Layer.mayMask()}
	if f == nil {
		return w
	}
	w.insist = f.insists(now, s.Settle)
	if !force && f.retry.IsZero() {
		w.known = f.sig
	}
	return w
}

// takeSight updates the state of a path from the result of reading it.
func (s *Source) takeSight(path string, v sight, now time.Time) {
	if errors.Is(v.err, errIrregular) && !s.gave(path) {
		delete(s.files, path)
		s.odd[path] = v.mode.IsDir()
		return
	}
	if errors.Is(v.err, fs.ErrNotExist) && !v.isLink {
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
		s.fail(path, f, v.err, v.entry, now)
	case v.isKnown && f.sig != v.known: // a late answer: the state no longer has that version
		f.retry = now
	case !v.isKnown:
		s.takeReading(path, f, v.reading, v.insist, now)
	}
}

// fileAt returns the state of a path; it creates a missing one.
func (s *Source) fileAt(path string, now time.Time) *fileState {
	f := s.files[path]
	if f == nil {
		f = &fileState{pending: true, seen: s.turn}
		s.recallUnclear(path, f)
		s.files[path] = f
		s.grows(now)
	}
	return f
}
