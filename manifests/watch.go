package manifests

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// isManifest reports whether a name in the folder is a manifest's: *.yaml, *.yml and
// *.json, neither hidden nor an editor's own.
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

// watch is a hint giver: it tells that something moved in one folder. The
// zero watch tells nothing. It belongs to the Source's goroutine.
type watch struct {
	watcher *fsnotify.Watcher
	on      signature // dev and ino of the folder that is watched
}

// folderID is what of a signature stays while a folder is the same.
func folderID(s signature) signature { return signature{dev: s.dev, ino: s.ino} }

// watched is a watch of a folder that was set, or why it was not.
type watched struct {
	watcher *fsnotify.Watcher // nil: the one that there is stays
	on      signature         // zero: none is wanted
	err     error
}

// setWatch watches the folder at path, whose identity is id, unless it is what is watched
// already: on. A folder that replaced another under the same name is another.
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

// close ends a watch that nobody takes.
func (w *watched) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
	w.watcher = nil
}

var errUnwatched = errors.New("the folder is not watched")

// take makes a watch that was set the one that tells. The error says that the folder is not
// watched.
func (w *watch) take(set watched) error {
	switch {
	case set.watcher != nil:
		w.close()
		w.watcher, w.on = set.watcher, set.on
	case set.err != nil:
		w.close()
		return set.err
	case w.watcher == nil || w.on != set.on: // none is wanted, or it ended since it was asked for
		return errUnwatched
	}
	return nil
}

// close ends the watching.
func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // inotify's close has nothing to lose
	}
	*w = watch{}
}

// events never delivers while nothing is watched.
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
