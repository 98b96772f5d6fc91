package manifests

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// isManifest reports whether a name in the folder is a manifest's: *.yaml, *.yml and *.json,
// neither hidden nor an editor's temporary file.
func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// watch reports events in one folder as hints. The zero watch reports nothing. It belongs to the
// Source's goroutine.
type watch struct {
	watcher *fsnotify.Watcher
	on      signature // dev and ino of the watched folder
}

// folderID returns the part of a signature that identifies a folder.
func folderID(s signature) signature { return signature{dev: s.dev, ino: s.ino} }

// watched is a new watch of a folder, or why there is none.
type watched struct {
	watcher *fsnotify.Watcher // nil: the present one stays
	on      signature         // zero: no watch is wanted
	err     error
}

// setWatch watches the folder at path, whose identity is id, unless on is the same folder: that is
// watched already. A folder that replaced another under the same name has another identity.
func setWatch(path string, id, on signature) watched {
	w := watched{on: id}
	if id == on {
		return w
	}
	if w.watcher, w.err = fsnotify.NewWatcher(); w.err != nil {
		return watched{on: id, err: w.err}
	}
	if err := w.watcher.Add(path); err != nil {
		w.close()
		return watched{on: id, err: err}
	}
	return w
}

// close closes a watch that is not taken over.
func (w *watched) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
	w.watcher = nil
}

var errUnwatched = errors.New("the folder is not watched")

// take replaces the present watch by a new one. It returns an error if the folder is not watched.
func (w *watch) take(set watched) error {
	switch {
	case set.watcher != nil:
		w.close()
		w.watcher, w.on = set.watcher, set.on
	case set.err != nil:
		w.close()
		return set.err
	case w.watcher == nil || w.on != set.on: // no watch is wanted, or it ended after the survey started
		return errUnwatched
	}
	return nil
}

// close ends the watch.
func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // closing inotify loses nothing
	}
	*w = watch{}
}

// events returns a channel that never delivers while nothing is watched.
func (w *watch) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

func (w *watch) errors() <-chan error {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Errors
}
