package devices

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Times of looks at the devices.
const (
	every  = 10 * time.Second       // events may be lost
	settle = 100 * time.Millisecond // a device that comes gets its links and its group within that
)

// Run looks at the devices when something changes in their folders, and now and then, and writes
// the file of the assignments when they change, until ctx ends. Without anything to look at it
// sleeps.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil {
		return
	}
	var w watcher
	defer w.close()
	for ctx.Err() == nil {
		var again <-chan time.Time
		if k.looks() {
			k.watch(&w)
			k.Look()
			again = time.After(every)
		}
		k.sleep(ctx, &w, again)
	}
}

// sleep waits until the devices may be others.
func (k *Keeper) sleep(ctx context.Context, w *watcher, again <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.woken:
			k.record()
			return
		case <-again:
			return
		case e := <-w.events:
			if e.Op == fsnotify.Write { // by a program that uses a device: some kernels tell of each
				continue
			}
			w.drain(ctx)
			return
		case <-w.errors:
			return
		}
	}
}

// looks reports whether there is anything to look at.
func (k *Keeper) looks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Counts() || len(k.missing) > 0
}

// Look looks at the devices once.
func (k *Keeper) Look() {
	if k.take(Look(k.settings)) {
		k.came.Wake()
		k.Changed()
	}
}

// record writes the file. What fails is tried again before a container is made.
func (k *Keeper) record() {
	err := k.save()
	if k.failed.IsNew(err) {
		k.log.Error("device assignments not written", "err", err)
	}
	k.Changed()
}

// watch watches the folders in which devices and CDI specifications may come. Those that do not
// exist yet are watched once they do: until then the folder above them is.
func (k *Keeper) watch(w *watcher) {
	if k.settings.Unwatched || !w.open(k) {
		return
	}
	for _, dir := range k.dirs() {
		_ = w.watcher.Add(dir) // the looks now and then are enough
	}
}

// dirs returns these folders.
func (k *Keeper) dirs() (all []string) {
	cdi := false
	for _, r := range k.settings.Resources {
		for _, pattern := range r.Paths {
			all = append(all, dirsOf(pattern)...)
		}
		cdi = cdi || len(r.CDI) > 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.missing {
		if w.device.CDI == "" {
			all = append(all, dirsOf(w.device.Path)...)
		}
		cdi = cdi || w.device.CDI != ""
	}
	for _, dir := range k.settings.SpecDirs {
		if cdi {
			all = append(all, dirsOf(filepath.Join(dir, "any"))...)
		}
	}
	return all
}

// dirsOf returns the folders that may hold what matches a pattern, and the lowest one above them
// that exists.
func dirsOf(pattern string) []string {
	dir := filepath.Dir(pattern)
	all, _ := filepath.Glob(dir)
	for strings.ContainsAny(dir, `*?[\`) || !exists(dir) {
		dir = filepath.Dir(dir)
	}
	return append(all, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// watcher reports events in folders as hints; the zero watcher reports none.
type watcher struct {
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	failed  bool
}

// open makes it report events. It returns false if it cannot.
func (w *watcher) open(k *Keeper) bool {
	if w.watcher != nil || w.failed {
		return !w.failed
	}
	made, err := fsnotify.NewWatcher()
	if err != nil {
		w.failed = true
		k.log.Warn("devices are only looked at now and then", "err", err)
		return false
	}
	w.watcher, w.events, w.errors = made, made.Events, made.Errors
	return true
}

// drain takes the events that come together with one that has come.
func (w *watcher) drain(ctx context.Context) {
	over := time.After(settle)
	for {
		select {
		case <-w.events:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}
