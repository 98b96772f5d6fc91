package config

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"monopod/agent/wake"
)

// rewatchEvery is how often watching a folder is tried again.
const rewatchEvery = 5 * time.Second

// quietFor is how long a file must stay unchanged before it is reported.
const quietFor = 200 * time.Millisecond

// FileWatch reports when a file may have changed: it watches the folders on its trail, so that a file
// that is replaced, or linked elsewhere, is noticed as well. One goroutine uses it.
type FileWatch struct {
	path    string
	trail   []string          // of the path, as it is watched
	watcher *fsnotify.Watcher // nil while the folders cannot be watched
	quiet   *time.Timer
	again   *time.Timer
	changed wake.Slot
	stop    chan struct{}
	done    chan struct{}
}

// WatchFile starts a watch; Close must be called. An empty path is never
// reported.
func WatchFile(path string) *FileWatch {
	w := &FileWatch{path: path, changed: wake.New(), stop: make(chan struct{}), done: make(chan struct{}),
		quiet: time.NewTimer(time.Hour), again: time.NewTimer(time.Hour)}
	w.quiet.Stop()
	w.again.Stop()
	if path == "" {
		close(w.done)
		return w
	}
	if abs, err := filepath.Abs(path); err == nil {
		w.path = abs
	}
	w.open()
	go w.run()
	return w
}

// Changed delivers when the file has not changed for a moment after something happened to it.
func (w *FileWatch) Changed() <-chan struct{} { return w.changed }

func (w *FileWatch) Close() {
	close(w.stop)
	<-w.done
}

// open watches the folders of the trail, or retries later.
func (w *FileWatch) open() {
	w.trail = trail(w.path)
	watcher, err := watchFolders(w.trail)
	if err != nil {
		w.again.Reset(rewatchEvery)
		return
	}
	w.watcher = watcher
	if !slices.Equal(trail(w.path), w.trail) { // it changed before it was watched
		w.quiet.Reset(quietFor)
	}
}

// watchFolders watches the folders in which these paths are.
func watchFolders(paths []string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		err = watcher.Add(filepath.Dir(p))
		if err != nil {
			watcher.Close()
			return nil, err
		}
	}
	return watcher, nil
}

// follow watches the folders of the trail as it is now.
func (w *FileWatch) follow() {
	if w.watcher != nil && slices.Equal(trail(w.path), w.trail) {
		return
	}
	w.drop()
	w.open()
}

func (w *FileWatch) run() {
	defer close(w.done)
	defer w.drop()
	for {
		var events <-chan fsnotify.Event
		var lost <-chan error
		if w.watcher != nil {
			events, lost = w.watcher.Events, w.watcher.Errors
		}
		select {
		case <-w.stop:
			return
		case e, ok := <-events:
			w.note(e, ok)
		case <-lost: // events were lost
			w.quiet.Reset(quietFor)
		case <-w.again.C:
			w.quiet.Reset(quietFor)
		case <-w.quiet.C:
			w.follow()
			w.changed.Wake()
		}
	}
}

// note takes an event as a hint. fsnotify names what is in the root folder //NAME.
func (w *FileWatch) note(e fsnotify.Event, ok bool) {
	name := filepath.Clean(e.Name)
	isFolder := slices.ContainsFunc(w.trail, func(p string) bool { return filepath.Dir(p) == name })
	switch {
	case !ok || isFolder && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)):
		w.drop()
		w.quiet.Reset(quietFor)
	case slices.Contains(w.trail, name):
		w.quiet.Reset(quietFor)
	}
}

func (w *FileWatch) drop() {
	if w.watcher != nil {
		w.watcher.Close()
		w.watcher = nil
	}
}
