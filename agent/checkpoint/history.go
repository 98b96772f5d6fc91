package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/manifests"
)

// historyDir holds the versions of pods that were ready, a file for each pod name. Older agents do
// not know it and leave it unchanged.
const historyDir = "history"

// historyLength is how many versions of a pod name are recorded.
const historyLength = 3

// Past is a version of a pod that was ready and stayed so. Neither its objects nor its images are
// kept for it.
type Past struct {
	Pod     *v1.Pod           `json:"pod"`  // as accepted
	File    string            `json:"file"` // the manifest that it came from
	Bounded bool              `json:"bounded,omitempty"`
	Images  map[string]string `json:"images"`         // the images that it ran, as in Update
	Since   time.Time         `json:"since"`          // since when it was ready, after its last start
	Until   time.Time         `json:"until,omitzero"` // until when it was ready; zero: it is the version that was ready last

	digest string
}

// Version returns the version, with the digest that this build gives it.
func (p *Past) Version() *manifests.Pod {
	return &manifests.Pod{Pod: p.Pod, File: p.File, Digest: p.digest, Unbounded: !p.Bounded}
}

// PastOf returns the record of a version that ran these images and has been ready since this time.
func PastOf(v *manifests.Pod, images map[string]string, since time.Time) Past {
	return Past{Pod: v.Pod, File: v.File, Bounded: !v.Unbounded, Images: images, Since: since.Truncate(time.Second), digest: v.Digest}
}

// history is the file of a pod name.
type history struct {
	Versions []Past `json:"versions"` // the one that was ready last comes first
}

func (r *Root) historyFile(key manifests.Key) string { return r.Path(historyDir, fileName(key)) }

// History returns the versions of a pod name that were ready, the last one first.
func (r *Root) History(key manifests.Key) ([]Past, error) {
	var h history
	err := disk.ReadOrAside(r.historyFile(key), func(b []byte) error {
		if err := disk.JSON(&h)(b); err != nil {
			return err
		}
		isOther := func(p Past) bool { return p.Pod == nil || manifests.KeyOf(p.Pod) != key }
		if slices.ContainsFunc(h.Versions, isOther) {
			return errors.New("it does not say of which pod it is")
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("versions of %s that were ready: %w", key, err)
	}
	for k := range h.Versions {
		h.Versions[k].digest = manifests.Restored(h.Versions[k].Pod)
	}
	return h.Versions, nil
}

// Remember records that a version is ready and stays so. formerly: when the version before it was
// ready last; zero: not known. It writes nothing if that is recorded already.
func (r *Root) Remember(p Past, formerly time.Time) error {
	key := manifests.KeyOf(p.Pod)
	all, err := r.History(key)
	var damaged *disk.Damaged
	if err != nil && !errors.As(err, &damaged) { // a damaged file is moved aside
		return err
	}
	if len(all) > 0 && all[0].isSame(&p) {
		if maps.Equal(all[0].Images, p.Images) && all[0].digest == p.digest {
			return nil
		}
		p.Since = all[0].Since
	} else if len(all) > 0 && all[0].Until.IsZero() {
		all[0].Until = p.Since // at the latest
		if !formerly.IsZero() {
			all[0].Until = formerly.Truncate(time.Second)
		}
	}
	all = slices.DeleteFunc(all, func(was Past) bool { return was.isSame(&p) })
	all = append([]Past{p}, all...)
	return r.saveHistory(key, history{Versions: all[:min(len(all), historyLength)]})
}

// isSame reports whether two records are of one version: of the same content, or the same but for
// what is known of the tags that it follows, with the same images.
func (p *Past) isSame(q *Past) bool {
	if p.digest == q.digest {
		return true
	}
	given := manifests.AsGiven([]*manifests.Pod{p.Version(), q.Version()})
	return given[0].Digest == given[1].Digest && maps.Equal(p.Images, q.Images)
}

func (r *Root) saveHistory(key manifests.Key, h history) error {
	file := r.historyFile(key)
	err := disk.MkdirAll(filepath.Dir(file), 0o750)
	if err != nil {
		return fmt.Errorf("versions of %s that were ready: %w", key, err)
	}
	b, err := json.Marshal(h)
	if err == nil {
		err = disk.WriteFile(file, disk.Seal(b), 0o600)
	}
	if err != nil {
		return fmt.Errorf("versions of %s that were ready: %w", key, err)
	}
	return nil
}

// ForgetHistory removes the record of a pod name.
func (r *Root) ForgetHistory(key manifests.Key) error {
	err := disk.Remove(r.historyFile(key))
	if err != nil {
		return fmt.Errorf("versions of %s that were ready: %w", key, err)
	}
	return nil
}

// ForgetOtherHistories removes the records of all pod names but these.
func (r *Root) ForgetOtherHistories(keys []manifests.Key) error {
	known := map[string]bool{}
	for _, key := range keys {
		known[fileName(key)] = true
	}
	entries, err := os.ReadDir(r.Path(historyDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !known[e.Name()] {
			err = errors.Join(err, disk.Remove(r.Path(historyDir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("versions of former pods that were ready: %w", err)
	}
	return nil
}
