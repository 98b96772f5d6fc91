package podlog

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches the folders of all logs that are followed with it by one inotify instance: a user has
// 128 of these, which other programs need, too. Any goroutine may call its methods; nothing may be
// followed with it any more when it is closed.
type Watcher struct {
	in   *fsnotify.Watcher // nil: the user has none left, and nothing is watched
	done chan struct{}     // closed when its goroutine has ended

	mu  sync.Mutex
	all map[string]map[*watch]bool // by folder
}

// NewWatcher returns a Watcher. Close must be called.
func NewWatcher() *Watcher {
	w := &Watcher{done: make(chan struct{}), all: map[string]map[*watch]bool{}}
	in, err := fsnotify.NewWatcher()
	if err != nil {
		close(w.done)
		return w
	}
	w.in = in
	go w.run()
	return w
}

// Close ends all watches.
func (w *Watcher) Close() {
	if w.in != nil {
		_ = w.in.Close() // closing inotify loses nothing
	}
	<-w.done
}

// run passes on events until the Watcher is closed.
func (w *Watcher) run() {
	defer close(w.done)
	for {
		select {
		case e, open := <-w.in.Events:
			if !open {
				return
			}
			w.pass(e)
		case _, open := <-w.in.Errors:
			if !open {
				return
			}
			w.lost()
		}
	}
}

// pass tells of an event those who follow its folder.
func (w *Watcher) pass(e fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := e.Name
	if w.all[dir] == nil {
		dir = filepath.Dir(e.Name)
	}
	isGone := dir == e.Name && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))
	for one := range w.all[dir] {
		one.sees = one.sees && !isGone
		one.note(!e.Has(fsnotify.Write) && !e.Has(fsnotify.Chmod))
	}
	if isGone {
		_ = w.in.Remove(dir) // it may be gone from there, too
	}
}

// lost tells all that events were lost.
func (w *Watcher) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.all {
		for one := range of {
			one.note(true)
		}
	}
}

// add starts to watch the folder of a watch, if it exists and is not watched, and reports whether it is.
func (w *Watcher) add(one *watch) (sees bool) {
	if w.in == nil || w.isSeen(one) {
		return w.in != nil
	}
	err := w.in.Add(one.dir)
	if err != nil {
		w.mu.Lock()
		one.sees = false
		w.mu.Unlock()
	}
	return err == nil
}

// isSeen reports whether a folder is watched. It counts as watched from then on: so an event that it is
// gone is not missed while it is added.
func (w *Watcher) isSeen(one *watch) (was bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[one.dir] == nil {
		w.all[one.dir] = map[*watch]bool{}
	}
	w.all[one.dir][one] = true
	was, one.sees = one.sees, true
	return was
}

// drop ends a watch.
func (w *Watcher) drop(one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all[one.dir], one)
	if len(w.all[one.dir]) > 0 {
		return
	}
	delete(w.all, one.dir)
	if w.in != nil {
		_ = w.in.Remove(one.dir) // it may not be watched
	}
}
