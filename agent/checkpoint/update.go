package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/message"
	"monopod/manifests"
)

// updatesDir holds the records of updates, a file for each pod name.
const updatesDir = "updates"

// Update is the record of an update that may be, or was, rolled back. It is written
// before the former version stops, and removed once the new one is healthy, or the pod
// is removed.
type Update struct {
	Former *v1.Pod `json:"former"` // the last version that was not in doubt, as accepted
	File   string  `json:"file"`   // the manifest that it came from
	// Bounded is of Former, as in its Checkpoint.
	Bounded bool `json:"bounded,omitempty"`
	// Images are the images that Former ran, by container, and those of its volumes, by "volume/"
	// and the volume. An older agent ignores the latter, and keeps them in what it writes.
	Images map[string]string `json:"images"`
	// Unchanged are the containers and volumes that are the same in Tried, an in-place update, and
	// in Former: they are restored with their image names. An older agent restores each with the
	// image that it ran, and omits this field when it writes the record.
	Unchanged []string `json:"unchanged,omitempty"`
	Tried     *v1.Pod  `json:"tried,omitempty"` // the version on trial; nil: its manifest is again that of Former
	Reason    string   `json:"reason,omitempty"`
	// Output is the last output of the containers of Tried that explains its failure, for a person.
	// An older agent omits it when it writes the record.
	Output string `json:"output,omitempty"`
	// Asked is set if a person requested the rollback. An older agent omits it when it writes the
	// record, and treats the update as one that did not work: Reason has the request.
	Asked *Asked `json:"asked,omitempty"`
	// Untold is set if Tried gives way and the event that Former is back was not recorded yet. An
	// older agent omits it, and records the event only if Former is not accepted yet when it starts.
	Untold bool          `json:"untold,omitempty"`
	Boot   string        `json:"boot,omitempty"`  // the boot in which Tried was watched
	Spent  time.Duration `json:"spent,omitempty"` // the time for which it was observed not ready in that boot, ns
}

// Asked is a person's request for a former version.
type Asked struct {
	At  time.Time `json:"at"`            // by the wall clock of that moment
	Why string    `json:"why,omitempty"` // the reason that the person gave
}

// String returns who requested it, when and why.
func (a *Asked) String() string {
	text := "by request at " + string(message.Time(a.At))
	if a.Why != "" {
		text += ": " + a.Why
	}
	return text
}

func (r *Root) updateFile(key manifests.Key) string { return r.Path(updatesDir, fileName(key)) }

// fileName returns the file name for a pod name: pod names may be longer than file names.
func fileName(key manifests.Key) string { return sum([]byte(key.String()))[:32] + ".json" }

// SaveUpdate writes the record of a pod name to disk, synced; nil removes it.
func (r *Root) SaveUpdate(key manifests.Key, u *Update) error {
	file := r.updateFile(key)
	if u == nil {
		if err := disk.Remove(file); err != nil {
			return fmt.Errorf("record of the update of %s: %w", key, err)
		}
		return nil
	}
	if err := disk.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("record of the update of %s: %w", key, err)
	}
	b, err := json.Marshal(u)
	if err == nil {
		err = disk.WriteFile(file, disk.Seal(b), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record of the update of %s: %w", key, err)
	}
	return nil
}

// Updates reads all these records. An unusable one is logged and left out: that update cannot be
// rolled back.
func (r *Root) Updates(log *slog.Logger) []*Update {
	entries, err := os.ReadDir(r.Path(updatesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("records of updates are unreadable; ignoring them", "err", err)
	}
	var all []*Update
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		file := r.Path(updatesDir, e.Name())
		u, err := readUpdate(file, disk.ReadOrAside)
		if err != nil {
			r.lost(log, "record of an update is unusable; ignoring it: that update is not rolled back", err)
			continue
		}
		all = append(all, u)
	}
	return all
}

// formersIn returns the versions that updates in a root dir may go back to. A record that is damaged
// has none.
func formersIn(root string) (formers []*v1.Pod, err error) {
	dir := filepath.Join(root, updatesDir)
	err = disk.Each(dir, 0, func(name string) error {
		if !strings.HasSuffix(name, ".json") {
			return nil
		}
		u, err := readUpdate(filepath.Join(dir, name), disk.Read)
		var damaged *disk.Damaged
		switch {
		case err == nil:
			formers = append(formers, u.Former)
		case !errors.As(err, &damaged) && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		return nil
	})
	return formers, err
}

func readUpdate(file string, read func(path string, parse func([]byte) error) error) (*Update, error) {
	var u Update
	err := read(file, func(b []byte) error {
		if err := disk.JSON(&u)(b); err != nil {
			return err
		}
		if u.Former == nil || u.Tried != nil && manifests.KeyOf(u.Tried) != manifests.KeyOf(u.Former) {
			return errors.New("it does not say of which pod it is")
		}
		return nil
	})
	return &u, err
}
