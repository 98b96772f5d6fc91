package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"monopod/manifests/decode"
)

// retryFolder is how long a folder that cannot be read or watched is left alone.
const retryFolder = time.Second

// scan looks through the whole folder. The watch is set before the listing,
// so that nothing is lost between them.
func (s *Source) scan(now time.Time) {
	s.full = false
	s.nextAll = now.Add(s.Rescan)
	if s.Dir == "" {
		s.scanNone(now)
		return
	}
	paths, here, err := s.list(now)
	if err != nil {
		s.watch.close()
		s.nextAll = now.Add(retryFolder)
		s.folder = []decode.Problem{{File: s.Dir, Message: folderMessage(err)}}
		s.forgetAbsences()
		return
	}
	s.folder = nil
	if s.Strict {
		s.writable = Writable(s.Dir)
	}
	if s.here != nil && s.here.differs(here) != sameFolder { // what was read belongs to another
		s.dropFiles(nil)
	}
	s.here = &here
	there := make(map[string]bool, len(paths))
	for _, path := range paths {
		there[path] = true
		s.look(path, now, s.dirty[path])
	}
	s.dropFiles(there)
	if s.doubt() != "" {
		s.nextAll = now.Add(retryFolder)
		s.forgetAbsences()
		return
	}
	s.countAbsences(now, true)
}

// scanNone stands for the look through a folder where none is given.
func (s *Source) scanNone(now time.Time) {
	s.folder = nil
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

// list returns the paths that may be manifests and the folder that they are
// in, and sees to the watch.
func (s *Source) list(now time.Time) ([]string, Folder, error) {
	info, err := os.Stat(s.Dir)
	if err != nil {
		return nil, Folder{}, err
	}
	folder := s.Dir
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, Folder{}, errIrregular
		}
		folder = filepath.Dir(s.Dir)
		if info, err = os.Stat(folder); err != nil {
			return nil, Folder{}, err
		}
	}
	err = s.watchFolder(folder, info)
	if err != nil {
		s.Log.Debug("watch manifests", "err", err)
		s.nextAll = now.Add(retryFolder) // no hints: look more often
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, Folder{}, err
	}
	defer f.Close()
	here, err := folderOf(f, s.Boot)
	if err != nil || folder != s.Dir {
		return []string{s.Dir}, here, err
	}
	paths, err := manifestsIn(f)
	return paths, here, err
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
	paths, err := manifestsIn(f)
	slices.Sort(paths)
	return paths, err
}

// manifestsIn lists the manifests of a folder, or fails: half a list is none.
func manifestsIn(folder *os.File) ([]string, error) {
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		if isManifest(name) {
			paths = append(paths, filepath.Join(folder.Name(), name))
		}
	}
	return paths, nil
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
			s.absent[key] = &absence{since: now}
		case complete && now.Sub(a.since) >= s.Settle:
			a.proven = true
		}
	}
	maps.DeleteFunc(s.absent, func(key Key, _ *absence) bool { return s.current[key] == nil })
	s.countObjects(now, complete)
}

// look updates the state of one path. force reads it even if it looks the same.
func (s *Source) look(path string, now time.Time, force bool) {
	if path != s.Dir && (!isManifest(filepath.Base(path)) || filepath.Dir(path) != s.Dir) {
		return
	}
	info, err := os.Lstat(path)
	link := err == nil && info.Mode()&fs.ModeSymlink != 0
	if link {
		info, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !link:
		delete(s.files, path)
		return
	case err == nil && !info.Mode().IsRegular() && !s.gave(path):
		delete(s.files, path)
		return
	}
	f := s.files[path]
	if f == nil {
		f = &fileState{pending: true, since: now}
		s.files[path] = f
		s.grows(now)
	}
	if f.link = link; err == nil {
		f.mode = info.Mode().Perm()
	}
	if err == nil && !info.Mode().IsRegular() { // not even opened: a pipe's writer would notice
		f.fail(path, errIrregular)
		return
	}
	if err == nil && !force && f.retry.IsZero() && f.sig == signatureOf(info) {
		return
	}
	s.read(path, f, now)
}

// grows makes absences count from now on: a folder that is being filled file by
// file is not complete yet.
func (s *Source) grows(now time.Time) {
	for a := range s.absences() {
		if !a.proven {
			a.since = now
		}
	}
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

var errUnwatched = errors.New("the folder is not watched")

func (s *Source) watchFolder(path string, info fs.FileInfo) error {
	if s.Unwatched {
		return errUnwatched
	}
	return s.watch.to(path, folderID(signatureOf(info)))
}
