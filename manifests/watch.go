package manifests

import (
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

// to watches the folder at path, whose identity is id, unless it is watched
// already. A folder that replaced another under the same name is another.
func (w *watch) to(path string, id signature) error {
	if w.watcher != nil && w.on == id {
		return nil
	}
	w.close()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := watcher.Add(path); err != nil {
		_ = watcher.Close()
		return err
	}
	w.watcher, w.on = watcher, id
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
