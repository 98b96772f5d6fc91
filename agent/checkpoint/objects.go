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

	v1 "k8s.io/api/core/v1"

	"monopod/agent/safefile"
	"monopod/agent/statefile"
	"monopod/agent/status"
	"monopod/manifests"
)

// objectsDir holds the ConfigMaps and Secrets in their last good versions, a file each.
// It is open to the agent's user alone.
const objectsDir = "objects"

// storedObject is the content of such a file.
type storedObject struct {
	File      string        `json:"file"` // the manifest that gave it
	ConfigMap *v1.ConfigMap `json:"configMap,omitempty"`
	Secret    *v1.Secret    `json:"secret,omitempty"`
}

// Objects reads the ConfigMaps and Secrets. An unusable one is logged and ignored; what is
// said of it quotes nothing.
func (r *Root) Objects(log *slog.Logger) []*manifests.Object {
	paths, _ := filepath.Glob(r.Path(objectsDir, "*.json"))
	var all []*manifests.Object
	for _, path := range paths {
		o, err := readObject(path)
		if err != nil {
			r.lost(log, "saved ConfigMap or Secret is unusable; ignoring it until a manifest gives it again", err)
			continue
		}
		all = append(all, o)
	}
	return all
}

func readObject(path string) (*manifests.Object, error) {
	var o *manifests.Object
	err := statefile.ReadOrAside(path, func(b []byte) error {
		var s storedObject
		if err := statefile.JSON(&s)(b); err != nil {
			return err
		}
		if (s.ConfigMap == nil) == (s.Secret == nil) {
			return errors.New("it holds no object")
		}
		if o = manifests.NewObject(s.ConfigMap, s.Secret, s.File); objectFile(o.Key()) != filepath.Base(path) {
			return errors.New("its name is that of another object")
		}
		return nil
	})
	return o, err
}

// objectFile is named by a digest, as the names of objects may be too long for a file's.
func objectFile(key manifests.ObjectKey) string {
	return strings.ToLower(key.Kind) + "-" + sum([]byte(key.Namespace + "/" + key.Name))[:32] + ".json"
}

// SaveObjects writes all ConfigMaps and Secrets to disk, synced, as far as they changed
// since the last call, and removes the others. One goroutine calls it.
func (r *Root) SaveObjects(all []*manifests.Object) error {
	dir := r.Path(objectsDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	saved, keep := map[string]*manifests.Object{}, map[string]bool{}
	var errs []error
	for _, o := range all {
		name := objectFile(o.Key())
		keep[name] = true
		if r.objects[name] == o {
			saved[name] = o
			continue
		}
		text, err := json.Marshal(storedObject{o.File, o.ConfigMap, o.Secret})
		if err == nil {
			err = status.WriteFile(filepath.Join(dir, name), append(statefile.Seal(text), '\n'), 0o600)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, err))
			continue
		}
		saved[name] = o
	}
	r.objects = saved
	entries, err := os.ReadDir(dir)
	errs = append(errs, err)
	for _, e := range entries {
		if !keep[e.Name()] {
			errs = append(errs, safefile.RemoveAll(context.Background(), filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
