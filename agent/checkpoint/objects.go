package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests"
)

// objectsDir holds the ConfigMaps and Secrets in their last good versions, a file each. Only the
// agent's user may open it.
const objectsDir = "objects"

// storedObject is the content of such a file.
type storedObject struct {
	File string `json:"file"` // the manifest that gave it
	// Retained is set if no manifest gives the object any more, and versions of pods need it. An
	// agent that does not know the field treats the object as one that a manifest gave, and removes
	// it once the file was looked for.
	Retained  bool          `json:"retained,omitempty"`
	ConfigMap *v1.ConfigMap `json:"configMap,omitempty"`
	Secret    *v1.Secret    `json:"secret,omitempty"`
}

// objectFiles are these files. Two goroutines write them: that of the Source, for what manifests
// give, and one of the sync loop's, for what versions need.
type objectFiles struct {
	mu    sync.Mutex
	saved map[string]*storedObject // by file
	given []*manifests.Object      // the objects that manifests give
	inUse func() []*manifests.Object
}

// Objects reads the ConfigMaps and Secrets: those that manifests gave, and those that are retained
// for versions of pods. An unusable one is logged and ignored; the log quotes none of its content.
func (r *Root) Objects(log *slog.Logger) (given, retained []*manifests.Object) {
	paths, _ := filepath.Glob(r.Path(objectsDir, "*.json"))
	for _, path := range paths {
		s, err := parseObject(path, disk.ReadOrAside)
		if err != nil {
			r.lost(log, "saved ConfigMap or Secret is unusable; ignoring it until a manifest gives it again", err)
			continue
		}
		if s.Retained {
			retained = append(retained, s.object())
		} else {
			given = append(given, s.object())
		}
	}
	r.objects.mu.Lock()
	defer r.objects.mu.Unlock()
	r.objects.given = given
	return given, retained
}

// SavedObjects reads the ConfigMaps and Secrets of an agent that may be running, as Objects does,
// and leaves unusable files in place. The error is fs.ErrNotExist if the agent never saved any.
func SavedObjects(root string) (all []*manifests.Object, err error) {
	dir := filepath.Join(root, objectsDir)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		s, err := parseObject(filepath.Join(dir, e.Name()), disk.Read)
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if err == nil {
			all = append(all, s.object())
		}
	}
	return all, err
}

func (s *storedObject) object() *manifests.Object {
	return manifests.NewObject(s.ConfigMap, s.Secret, s.File)
}

// parseObject reads a file with one of the functions of disk.
func parseObject(path string, read func(string, func([]byte) error) error) (*storedObject, error) {
	var s storedObject
	err := read(path, func(b []byte) error {
		s = storedObject{}
		if err := disk.JSON(&s)(b); err != nil {
			return err
		}
		if (s.ConfigMap == nil) == (s.Secret == nil) {
			return errors.New("it holds no object")
		}
		if objectFile(s.object().Key()) != filepath.Base(path) {
			return errors.New("its name is that of another object")
		}
		return nil
	})
	return &s, err
}

// objectFile returns a name made of a digest, as the names of objects may be too long for a file
// name.
func objectFile(key manifests.ObjectKey) string {
	return strings.ToLower(key.Kind) + "-" + sum([]byte(key.Namespace + "/" + key.Name))[:32] + ".json"
}

// UseObjects sets the func that returns the ConfigMaps and Secrets in use, which are kept whether
// manifests give them or not. Any goroutine may call inUse.
func (r *Root) UseObjects(inUse func() []*manifests.Object) {
	r.objects.mu.Lock()
	defer r.objects.mu.Unlock()
	r.objects.inUse = inUse
}

// SaveObjects writes all ConfigMaps and Secrets that manifests give to disk, synced, if they
// changed since the last call, and removes those that are neither given nor in use.
func (r *Root) SaveObjects(given []*manifests.Object) error {
	r.objects.mu.Lock()
	defer r.objects.mu.Unlock()
	r.objects.given = given
	return r.writeObjects()
}

// RetainObjects does the same after the objects in use have changed.
func (r *Root) RetainObjects() error {
	r.objects.mu.Lock()
	defer r.objects.mu.Unlock()
	if r.objects.inUse == nil {
		return nil
	}
	return r.writeObjects()
}

// writeObjects writes the objects that are given or in use, and removes the files of all others.
func (r *Root) writeObjects() error {
	dir := r.Path(objectsDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	saved, now := map[string]*storedObject{}, r.objects.now()
	var errs []error
	for name, o := range now {
		if was := r.objects.saved[name]; was != nil && *was == *o {
			saved[name] = o
			continue
		}
		text, err := json.Marshal(o)
		if err == nil {
			err = disk.WriteFile(filepath.Join(dir, name), append(disk.Seal(text), '\n'), 0o600)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.object(), err))
			continue
		}
		saved[name] = o
	}
	r.objects.saved = saved
	entries, err := os.ReadDir(dir)
	errs = append(errs, err)
	for _, e := range entries {
		if now[e.Name()] == nil {
			errs = append(errs, disk.RemoveAll(context.Background(), filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// now returns the content that the files must have, by file.
func (f *objectFiles) now() map[string]*storedObject {
	all := make(map[string]*storedObject, len(f.given))
	for _, o := range f.given {
		all[objectFile(o.Key())] = &storedObject{File: o.File, ConfigMap: o.ConfigMap, Secret: o.Secret}
	}
	if f.inUse == nil {
		return all
	}
	for _, o := range f.inUse() {
		if name := objectFile(o.Key()); all[name] == nil {
			all[name] = &storedObject{File: o.File, Retained: true, ConfigMap: o.ConfigMap, Secret: o.Secret}
		}
	}
	return all
}
