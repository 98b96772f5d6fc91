package config

import (
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"monopod/agent/wake"
)

// rewatchEvery is how often watching a folder is tried again.
const rewatchEvery = 5 * time.Second

// quietFor is how long a file must stay unchanged before it is reported.
const quietFor = 200 * time.Millisecond

// FileWatch reports when a file may have changed: it watches the folder, so that a file that is
// replaced, or linked elsewhere, is noticed as well. One goroutine uses it.
type FileWatch struct {
	path    string
	watcher *fsnotify.Watcher // nil while the folder cannot be watched
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

// open watches the folder, or retries later.
func (w *FileWatch) open() {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(w.path)); err != nil {
			watcher.Close()
		}
	}
	if err != nil {
		w.again.Reset(rewatchEvery)
		return
	}
	w.watcher = watcher
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
			w.open()
			w.quiet.Reset(quietFor)
		case <-w.quiet.C:
			w.changed.Wake()
		}
	}
}

// note takes an event as a hint. If the file is a link, any name in the folder may be its target,
// such as ..data of a mounted ConfigMap.
func (w *FileWatch) note(e fsnotify.Event, ok bool) {
	folder := filepath.Dir(w.path)
	if !ok || e.Name == folder && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		w.drop()
		w.again.Reset(rewatchEvery)
		w.quiet.Reset(quietFor)
		return
	}
	info, err := os.Lstat(w.path)
	if link := err == nil && info.Mode().Type() == os.ModeSymlink; e.Name == w.path || link {
		w.quiet.Reset(quietFor)
	}
}

func (w *FileWatch) drop() {
	if w.watcher != nil {
		w.watcher.Close()
		w.watcher = nil
	}
}
