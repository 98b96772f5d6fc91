package manifests

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"monopod/manifests/decode"
)

// retryFolder is the delay before a folder that cannot be read or watched is tried again.
const retryFolder = time.Second

// scan reads the whole folder.
func (s *Source) scan(now time.Time) {
	s.full = false
	s.nextAll = now.Add(s.Rescan)
	if s.Dir == "" {
		s.scanNone(now)
		return
	}
	clear(s.asking.asked)
	l, err := ask(s.asking, &s.asking.folder, s.Dir, s.surveyor())
	if err == nil {
		err = l.err
	}
	if err != nil {
		s.watch.close()
		s.nextAll = now.Add(retryFolder)
		s.folder = []decode.Problem{{File: s.Dir, Message: folderMessage(err)}}
		s.forgetAbsences()
		s.refill(now)
		return
	}
	s.adopt(l, now)
	s.lookAtAll(l.paths, now)
	s.asking.dropLate()
	if s.doubt() != "" {
		s.nextAll = now.Add(retryFolder)
		s.forgetAbsences()
		s.refill(now)
		return
	}
	s.countAbsences(now, true)
	if s.isFilled(now) {
		s.filled = time.Time{}
	}
}

// lookAtAll updates the states of the files in a complete list of paths, and drops the others.
func (s *Source) lookAtAll(paths []string, now time.Time) {
	slices.Sort(paths)
	paths = s.withoutMasked(paths)
	entries := s.lookUpAll(paths)
	for k, path := range paths {
		if entries == nil {
			s.look(path, now, s.dirty[path])
		} else {
			s.takeEntry(path, &entries[k], now, s.dirty[path])
		}
	}
	s.dropFiles(paths)
	s.asking.room = entries
}

// adopt takes over the watch and the identity of the listed folder.
func (s *Source) adopt(l listing, now time.Time) {
	s.folder, s.openTo, s.inside = nil, l.writable, notRead(l.folders, s.Dir)
	if err := s.watch.take(l.watched); err != nil && s.Hints == nil {
		s.Log.Debug("watch manifests", "err", err)
		s.nextAll = now.Add(retryFolder) // no events: read it more often
	}
	if s.here != nil && s.here.differs(l.here) != sameFolder { // what was read belongs to another folder
		s.dropFiles(nil)
	}
	here := l.here
	s.here = &here
	switch was := s.record.Folder; {
	case was == nil || here.differs(*was) != otherFolder:
		s.filled = time.Time{}
	case s.filled.IsZero():
		s.filled = now
	}
}

// scanNone replaces scan if no folder is configured.
func (s *Source) scanNone(now time.Time) {
	s.folder, s.inside = nil, nil
	file := s.ofFiles()
	if file == "" {
		return
	}
	problem := []decode.Problem{{File: file, Message: "is not read any more, as no manifest folder is given: " +
		"the pods and objects of files stay; give the folder again with --manifests" + orAcceptByHand}}
	if s.hasPodsOfFiles() {
		s.folder = problem
	} else {
		s.inside = problem // all pods are certain
	}
}

// folderMessage returns the message about a folder that cannot be read.
func folderMessage(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist: pods known from before keep running, and monopod reads it as soon as it appears"
	case errors.Is(err, errIrregular):
		return "neither a folder nor a file: pods known from before keep running until it is one"
	}
	return fmt.Sprintf("cannot be read, pods known from before keep running: %v", err)
}

// listing is what was found in a folder.
type listing struct {
	paths    []string // of possible manifests
	folders  []string // names of the folders in it, which are not read
	here     Folder   // the folder that was listed
	watched  watched
	writable []decode.Problem // write access of other users to the folder and the folders above it
	err      error            // why it cannot be read
}

// surveyor returns a function that lists the folder and sets its watch. It may hang, and uses
// nothing that belongs to the Source's goroutine.
func (s *Source) surveyor() func() listing {
	c, on := s.SourceConfig, s.watch.on
	return func() listing {
		l := listing{}
		l.err = l.survey(&c, on)
		if l.err != nil {
			l.watched.close()
		}
		return l
	}
}

// survey sets the watch before it lists the folder, so that no change between the two is lost.
func (l *listing) survey(c *SourceConfig, on signature) error {
	info, err := os.Stat(c.Dir)
	if err != nil {
		return err
	}
	folder := c.Dir
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return errIrregular
		}
		folder = filepath.Dir(c.Dir)
		if info, err = os.Stat(folder); err != nil {
			return err
		}
	}
	if c.Strict {
		l.writable = writableFile(folder, c.Root, true)
	}
	if !c.Unwatched && c.Hints == nil {
		l.watched = setWatch(folder, folderID(signatureOf(info)), on)
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	if l.here, err = folderOf(f, c.Boot); err != nil {
		return err
	}
	if folder != c.Dir {
		l.paths = []string{c.Dir}
		return nil
	}
	l.paths, l.folders, err = manifestsIn(f)
	return err
}

// Paths returns the files to read for a path: those of a folder that the Source would read, sorted;
// any other path as it is.
func Paths(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	paths, _, err := manifestsIn(f)
	slices.Sort(paths)
	return paths, err
}

// NotRead notes the folders in a folder of manifests; a path that is not a folder has no note.
func NotRead(dir string) []decode.Problem {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	_, folders, _ := manifestsIn(f)
	return notRead(folders, dir)
}

// notRead returns one note about all folders in dir.
func notRead(folders []string, dir string) []decode.Problem {
	if len(folders) == 0 {
		return nil
	}
	slices.Sort(folders)
	return []decode.Problem{{File: dir, Warning: true, Note: true,
		Message: strings.Join(folders, "/, ") + "/: not read, as by a kubelet: manifests stand in the folder itself"}}
}

// oddities warns of what is named like a manifest and is no file: a runtime that mounts a file which
// is missing makes a folder of its name.
func (s *Source) oddities() (all []decode.Problem) {
	for _, path := range slices.Sorted(maps.Keys(s.odd)) {
		what := "pipe, socket or device"
		if s.odd[path] {
			what = "folder"
		}
		all = append(all, decode.Problem{File: path, Warning: true,
			Message: "not read, as it is a " + what + " or a link to one: a manifest is a file; remove it, or give it another name"})
	}
	return all
}

// manifestsIn lists the manifests of a folder, and the names of the folders in it. It fails rather
// than return a partial list. Hidden names, such as the parts of a mounted ConfigMap, and what mkfs
// creates are left out.
func manifestsIn(folder *os.File) (paths, folders []string, err error) {
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, nil, err
	}
	paths = make([]string, 0, len(names))
	hasOthers := false
	for _, name := range names {
		if isManifest(name) {
			paths = append(paths, filepath.Join(folder.Name(), name))
		} else {
			hasOthers = hasOthers || mayBeNoted(name)
		}
	}
	if hasOthers {
		folders, err = foldersIn(folder)
	}
	return paths, folders, err
}

// mayBeNoted reports whether a note may mention a folder of that name, as manifests may be in it.
func mayBeNoted(name string) bool { return !strings.HasPrefix(name, ".") && name != "lost+found" }

// foldersIn returns the names of the folders in a folder. It reads the list again, now with the
// type of each name: few folders of manifests have any.
func foldersIn(folder *os.File) (names []string, err error) {
	if _, err := folder.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	entries, err := folder.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() && !isManifest(e.Name()) && mayBeNoted(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// countAbsences records which pods are gone from the files that they came from. A pod whose file
// has other content now may come back in another file at once. complete: the whole folder was read
// just now.
func (s *Source) countAbsences(now time.Time, complete bool) {
	named := s.namedPods()
	for key, p := range s.current {
		f, a := s.files[p.File], s.absent[key]
		switch {
		case IsURL(p.File): // its answers prove the removal
			delete(s.absent, key)
		case f != nil && (named[p] || f.mayGive()):
			delete(s.absent, key)
		case a == nil:
			s.absent[key] = &absence{went: now, since: now}
		case complete && !now.Before(s.provenAt(a)):
			a.proven = true
		}
	}
	maps.DeleteFunc(s.absent, func(key Key, _ *absence) bool { return s.current[key] == nil })
	s.countObjects(now, complete)
	s.countMasks(now, complete)
}

// namedPods returns the current pods that their own files give or refuse. A file may have thousands: none
// is searched for each of its pods.
func (s *Source) namedPods() map[*Pod]bool {
	named := make(map[*Pod]bool, len(s.current))
	note := func(key Key, path string) {
		p := s.current[key]
		if p != nil && p.File == path {
			named[p] = true
		}
	}
	for path, f := range s.files {
		for k := range f.Pods {
			note(f.Pods[k].Key(), path)
		}
		for _, key := range f.Refused {
			note(key, path)
		}
	}
	return named
}

// grows restarts the settle time of all absences: a folder that is being filled file by file is not
// complete yet.
func (s *Source) grows(now time.Time) {
	s.refill(now)
	for a := range s.absences() {
		if !a.proven {
			a.since = now
		}
	}
}

// refill restarts the wait until a recreated folder counts as complete.
func (s *Source) refill(now time.Time) {
	if !s.filled.IsZero() {
		s.filled = now
	}
}

// isFilled reports whether a recreated folder has become complete.
func (s *Source) isFilled(now time.Time) bool {
	return !s.filled.IsZero() && !now.Before(s.filled.Add(s.RemovalSettle))
}

// provenAt returns when a complete pass through the folder proves an absence.
func (s *Source) provenAt(a *absence) time.Time {
	at := a.since.Add(s.Settle)
	if filled := s.filled.Add(s.RemovalSettle); !s.filled.IsZero() && filled.After(at) {
		return filled
	}
	return at
}

// gave reports whether a pod or object came from the path: what is there now, although not a
// regular file, then counts as a manifest and proves no removal. Any other such path is not a
// manifest.
func (s *Source) gave(path string) bool {
	for _, p := range s.current {
		if p.File == path {
			return true
		}
	}
	for _, o := range s.objects {
		if o.File == path {
			return true
		}
	}
	return false
}
