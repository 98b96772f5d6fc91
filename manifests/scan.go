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

// retryFolder is how long a folder that cannot be read or watched is left alone.
const retryFolder = time.Second

// scan looks through the whole folder.
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

// lookAtAll looks at the paths of a complete list, and drops the files that it lacks.
func (s *Source) lookAtAll(paths []string, now time.Time) {
	slices.Sort(paths)
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

// adopt takes over what the folder is.
func (s *Source) adopt(l listing, now time.Time) {
	s.folder, s.openTo, s.inside = nil, l.writable, notRead(l.folders, s.Dir)
	if err := s.watch.take(l.watched); err != nil && s.Hints == nil {
		s.Log.Debug("watch manifests", "err", err)
		s.nextAll = now.Add(retryFolder) // no hints: look more often
	}
	if s.here != nil && s.here.differs(l.here) != sameFolder { // what was read belongs to another
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

// scanNone stands for the look through a folder where none is given.
func (s *Source) scanNone(now time.Time) {
	s.folder, s.inside = nil, nil
	for _, key := range slices.SortedFunc(maps.Keys(s.current), compareKeys) {
		if file := s.current[key].File; !IsURL(file) {
			s.folder = []decode.Problem{{File: file, Message: "is not read any more, as no manifest folder is given: " +
				"the pods of files keep running; give the folder again with --manifests" + orAcceptByHand}}
			return
		}
	}
}

// folderMessage says what to do about a folder that cannot be read.
func folderMessage(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist: pods known from before keep running, and monopod reads it as soon as it appears"
	case errors.Is(err, errIrregular):
		return "neither a folder nor a file: pods known from before keep running until it is one"
	}
	return fmt.Sprintf("cannot be read, pods known from before keep running: %v", err)
}

// listing is what there is to read.
type listing struct {
	paths    []string // that may be manifests
	folders  []string // names of those in it, which are not read
	here     Folder   // that they are in
	watched  watched
	writable []decode.Problem // what others may write of the folder, and of the way to it
	err      error            // why it cannot be read
}

// surveyor returns what lists the folder and sees to its watch. It may hang, and uses nothing
// that belongs to the Source's goroutine.
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

// survey sets the watch before the folder is listed, so that nothing is lost between them.
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

// Paths returns the files that a path stands for: those of a folder that the
// Source would read, sorted; anything else stands for itself.
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

// NotRead notes the folders in a folder of manifests; a path that is none has no note.
func NotRead(dir string) []decode.Problem {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	_, folders, _ := manifestsIn(f)
	return notRead(folders, dir)
}

// notRead is one note about all folders in dir.
func notRead(folders []string, dir string) []decode.Problem {
	if len(folders) == 0 {
		return nil
	}
	slices.Sort(folders)
	return []decode.Problem{{File: dir, Warning: true, Note: true,
		Message: strings.Join(folders, "/, ") + "/: not read, as by a kubelet: manifests stand in the folder itself"}}
}

// manifestsIn lists the manifests of a folder, and the names of the folders in it, or fails: half
// a list is none. What is hidden, such as the parts of a mounted ConfigMap, and what mkfs makes are
// nobody's manifests.
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

// mayBeNoted reports whether a folder of that name is told of, as manifests may stand in it.
func mayBeNoted(name string) bool { return !strings.HasPrefix(name, ".") && name != "lost+found" }

// foldersIn returns the names of the folders in one, of which few have any: the list is read once
// more, as it has what each name is.
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

// countAbsences records which pods are gone from the files that they came from. A pod
// whose file has other content now may be back in another one at once. complete: the
// whole folder was read just now.
func (s *Source) countAbsences(now time.Time, complete bool) {
	for key, p := range s.current {
		f, a := s.files[p.File], s.absent[key]
		switch {
		case IsURL(p.File): // whose answers prove it
			delete(s.absent, key)
		case f != nil && (f.gives(key) || slices.Contains(f.Refused, key) || f.mayGive()):
			delete(s.absent, key)
		case a == nil:
			s.absent[key] = &absence{went: now, since: now}
		case complete && !now.Before(s.provenAt(a)):
			a.proven = true
		}
	}
	maps.DeleteFunc(s.absent, func(key Key, _ *absence) bool { return s.current[key] == nil })
	s.countObjects(now, complete)
}

// grows makes absences count from now on: a folder that is being filled file by
// file is not complete yet.
func (s *Source) grows(now time.Time) {
	s.refill(now)
	for a := range s.absences() {
		if !a.proven {
			a.since = now
		}
	}
}

// refill makes a folder that was made again count as complete some time after now.
func (s *Source) refill(now time.Time) {
	if !s.filled.IsZero() {
		s.filled = now
	}
}

// isFilled reports whether a folder that was made again has become complete.
func (s *Source) isFilled(now time.Time) bool {
	return !s.filled.IsZero() && !now.Before(s.filled.Add(s.RemovalSettle))
}

// provenAt is from when on an absence is proven by a complete look through the folder.
func (s *Source) provenAt(a *absence) time.Time {
	at := a.since.Add(s.Settle)
	if filled := s.filled.Add(s.RemovalSettle); !s.filled.IsZero() && filled.After(at) {
		return filled
	}
	return at
}

// gave reports whether a pod or object came from the path: what is no file there was one, and
// proves no removal. Any other is no manifest.
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
