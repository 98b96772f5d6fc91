package archives

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"monopod/agent/backoff"
	"monopod/agent/disk"
	"monopod/agent/panics"
)

// Times of looks at the folders.
const (
	every    = 10 * time.Second       // events may be lost, and network file systems have none
	soon     = 500 * time.Millisecond // while an archive is being written
	noWriter = 10 * time.Second       // unchanged for so long, it counts as whole though it may have a writer
	listWait = 2 * time.Second        // for a file system's answer about a folder
	readWait = 30 * time.Minute       // for one archive, which the others wait for
)

// follow looks at the folders when something changes in them, and now and then.
func (k *Keeper) follow(ctx context.Context) {
	if k.config.Made != "" {
		_ = os.MkdirAll(k.config.Made, 0o700) // the look tells why not
	}
	w := k.newWatcher()
	defer w.close()
	first := true
	for ctx.Err() == nil {
		for _, dir := range k.config.Dirs {
			w.add(dir)
		}
		wait := k.look(ctx, time.Now())
		if first {
			close(k.looked)
			first = false
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-w.events:
		case <-w.errors:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// watcher reports events in folders as hints; the zero watcher reports none.
type watcher struct {
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
}

func (k *Keeper) newWatcher() watcher {
	if k.config.Unwatched {
		return watcher{}
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		k.config.Log.Warn("folders of archives are only looked at now and then", "err", err)
		return watcher{}
	}
	return watcher{w, w.Events, w.Errors}
}

// add watches a folder; one that was made again, too.
func (w *watcher) add(dir string) {
	if w.watcher != nil {
		_ = w.watcher.Add(dir) // the look tells why not
	}
}

func (w *watcher) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}

// look looks at all folders once. It returns when to look again.
func (k *Keeper) look(ctx context.Context, now time.Time) (wait time.Duration) {
	wait = every
	there := map[string]bool{}
	for _, dir := range k.config.Dirs {
		is, err := k.list(ctx, dir)
		if err == nil && k.isUnmounted(dir, is) {
			err = errUnmounted
		}
		k.tellDir(dir, dirProblem(dir, err))
		if err != nil {
			k.keep(dir, there)
		}
		for _, f := range is.all {
			there[f.path] = true
			if !k.take(f, is.disk, now) {
				wait = soon
			}
		}
	}
	k.drop(there)
	k.readAll(ctx)
	return wait
}

// listed is the answer about one folder.
type listed struct {
	all  []file
	disk string // the file system that it is on; "": not known
	err  error
}

// errUnmounted reports that a folder is there without the disk that is mounted on it.
var errUnmounted = errors.New("it is on another file system than before, without an archive: mount its disk, or put an archive there; the images of its archives stay until then")

// isUnmounted reports whether a folder that has no archive is on another file system than the archives
// that are known of it. An empty folder proves that they are gone only where they were.
func (k *Keeper) isUnmounted(dir string, is listed) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path, e := range k.all {
		if len(is.all) == 0 && filepath.Dir(path) == dir && e.disk != "" && e.disk != is.disk {
			return true
		}
	}
	return false
}

// list returns the archives of a folder, which may be of a server that is gone.
func (k *Keeper) list(ctx context.Context, dir string) (listed, error) {
	l, err := k.lists.Ask(dir, listWait, ctx.Done(), func() listed {
		err := k.refuse(dir)
		if err != nil {
			return listed{err: err}
		}
		all, err := list(dir, k.isNews)
		return listed{all, disk.FileSystem(dir), err}
	})
	return l, cmp.Or(err, l.err)
}

// refuse returns an error if other users may write a folder or an archive, unless that is allowed.
func (k *Keeper) refuse(path string) error {
	if k.config.Insecure {
		return nil
	}
	return refuse(path, filepath.Dir(k.config.Record))
}

// isNews reports whether it is not known yet that the version of a file is whole.
func (k *Keeper) isNews(f file) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[f.path]
	return e == nil || e.sig != f.sig || e.State == BeingWritten
}

// keep adds the archives that are known of a folder: while it cannot be read, none is gone.
func (k *Keeper) keep(dir string, there map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path := range k.all {
		there[path] = there[path] || filepath.Dir(path) == dir
	}
}

// tellDir reports the problem of a folder if it is another one than before; "": it has none.
func (k *Keeper) tellDir(dir, problem string) {
	if k.dirs[dir] != problem {
		k.dirs[dir] = problem
		k.config.Problem(dir, problem)
	}
}

// dirProblem says why a folder cannot be used.
func dirProblem(dir string, err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("folder of image archives %s: it does not exist: make it, or mount its disk", dir)
	}
	return fmt.Sprintf("folder of image archives %s: %s", dir, cmp.Or(cause(err), err).Error())
}

// cause leaves out the path, which stands before it.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return nil
}

// take takes what was found on a file system. It returns false if the archive is being written.
func (k *Keeper) take(f file, fileSystem string, now time.Time) (whole bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[f.path]
	if e == nil {
		e = &entry{Known: Known{Path: f.path, State: BeingWritten}}
		k.all[f.path] = e
	}
	e.disk = fileSystem
	if e.sig != f.sig || !e.found {
		e.sig, e.found, e.unchanged, e.retry = f.sig, true, now, time.Time{}
		k.set(e, BeingWritten)
	}
	if e.isToRead(now) {
		k.set(e, Unread)
	}
	if e.State != BeingWritten {
		return true
	}
	if now.Sub(e.unchanged) < noWriter && f.written {
		return false
	}
	if r, known := k.record[f.path]; known && r.Is == f.sig {
		e.Index = r.Index
		k.set(e, Due) // the runtime may have lost them
		return true
	}
	k.set(e, Unread)
	return true
}

// isToRead reports whether a broken archive is to be read once more.
func (e *entry) isToRead(now time.Time) bool {
	return e.State == Broken && len(e.Index.Images) == 0 && !e.retry.IsZero() && !now.Before(e.retry)
}

// drop forgets the archives that are gone.
func (k *Keeper) drop(there map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.record, func(path string, _ imported) bool { return !there[path] })
	for path, e := range k.all {
		if !there[path] {
			k.mend(e)
			delete(k.all, path)
			k.set(e, Broken) // who waits for it looks again
		}
	}
}

// readAll reads what the archives have that are whole.
func (k *Keeper) readAll(ctx context.Context) {
	for _, a := range k.List() {
		if a.State != Unread || ctx.Err() != nil {
			continue
		}
		r, err := k.reads.Ask(a.Path, readWait, ctx.Done(), func() readResult {
			index, err := k.read(ctx, a.Path)
			return readResult{index, err}
		})
		if ctx.Err() == nil && err == nil { // else the next look asks again
			k.takeIndex(a.Path, r.index, r.err)
		}
	}
}

// readResult is the answer about one archive.
type readResult struct {
	index Index
	err   error
}

// read reads what an archive has.
func (k *Keeper) read(ctx context.Context, path string) (index Index, err error) {
	defer panics.Catch(&err)
	err = k.refuse(path)
	if err != nil {
		return index, err
	}
	return readFile(ctx, path)
}

// mayPass reports whether an archive may be read later as it is: it is not its content that is wrong.
func mayPass(err error) bool {
	return errors.As(err, new(syscall.Errno)) || errors.As(err, new(*openTo)) || errors.Is(err, errNoZstd)
}

// readFile reads the index of an archive.
func readFile(ctx context.Context, path string) (index Index, err error) {
	tar, err := Open(ctx, path)
	if err != nil {
		return index, cmp.Or(cause(err), err)
	}
	index, err = ReadIndex(tar, arch)
	return index, errors.Join(err, onlyIf(err == nil, tar.Close()))
}

// onlyIf returns err if it counts.
func onlyIf(counts bool, err error) error {
	if counts {
		return err
	}
	return nil
}

// takeIndex records what an archive has, unless it has changed meanwhile.
func (k *Keeper) takeIndex(path string, index Index, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[path]
	if e == nil || e.State != Unread {
		return
	}
	if err != nil {
		e.Index = Index{}
		if mayPass(err) {
			e.failures++
			e.retry = time.Now().Add(backoff.After(e.failures))
		}
		k.fail(e, err)
		return
	}
	k.mend(e)
	e.Index = index
	k.set(e, Due)
	for w := range k.watches {
		if e.names(w.name) {
			delete(k.watches, w)
			w.do()
		}
	}
}
