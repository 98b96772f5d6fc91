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
	"sync"

	"monopod/agent/disk"
	"monopod/agent/podspec"
	"monopod/manifests/poduid"
)

// AdoptedFile is the list, in the root dir, of the sandboxes that the agent took over from a
// kubelet: the labels of a sandbox never change, so these do not have the mark of the root dir. Only
// `monopod adopt` adds to it, while no agent runs; an id goes once its sandbox is gone. The file has
// a twin.
//
// An agent that does not know the file leaves these sandboxes alone, and tries to start their pods
// a second time.
const AdoptedFile = "adopted.json"

// Marks tell the agent's sandboxes and containers from those of others. Any goroutine may use them.
type Marks struct {
	Instance string // the value of the label of the agent's own; "": it has none yet

	mu      sync.RWMutex
	adopted map[string]bool // the ids of adopted sandboxes
}

// Selector returns the labels that the agent's sandboxes and containers have in common; nil: some
// have none, so all must be listed.
func (m *Marks) Selector() map[string]string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.adopted) > 0 {
		return nil
	}
	return map[string]string{podspec.LabelInstance: m.Instance}
}

// Text returns a text that stands in whatever is the agent's; "": there is none in common.
func (m *Marks) Text() string { return m.Selector()[podspec.LabelInstance] }

// Has reports whether a sandbox, or a container in it, is the agent's.
func (m *Marks) Has(sandbox string, labels map[string]string) bool {
	if m.Instance != "" && labels[podspec.LabelInstance] == m.Instance {
		return true
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.adopted[sandbox]
}

// Adopted returns the ids of the adopted sandboxes, sorted.
func (m *Marks) Adopted() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.adopted))
}

func (m *Marks) set(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopted = map[string]bool{}
	for _, id := range ids {
		m.adopted[id] = true
	}
}

// adoptedSandboxes is the content of AdoptedFile.
type adoptedSandboxes struct {
	Sandboxes []string `json:"sandboxes"` // their ids
}

// parseAdopted returns the func that parses the file.
func parseAdopted(to *adoptedSandboxes) func([]byte) error {
	return func(b []byte) error {
		if err := disk.JSON(to)(b); err != nil {
			return err
		}
		if slices.Contains(to.Sandboxes, "") {
			return errors.New("it has a sandbox without an id")
		}
		return nil
	}
}

// ReadAdopted reads which sandboxes were adopted. Without that the agent must not run: it would
// start their pods a second time.
func (r *Root) ReadAdopted() error {
	var is adoptedSandboxes
	err := r.readTwins(r.Path(AdoptedFile), 0o600, "the list of adopted sandboxes was damaged, and is as before", parseAdopted(&is))
	switch damaged := (*disk.Damaged)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &damaged):
		return fmt.Errorf("%w; so the agent cannot recognize the pods that it took over, and would start them twice: restore it, or write it again with `monopod adopt --yes`", err)
	case err != nil:
		return fmt.Errorf("adopted sandboxes: %w", err)
	}
	r.Marks.set(is.Sandboxes)
	return nil
}

// Adopt records that the root dir's agent has these sandboxes, too.
func (r *Root) Adopt(ids []string) error {
	return r.saveAdopted(slices.Concat(r.Marks.Adopted(), ids))
}

// DropAdopted records that these sandboxes are gone.
func (r *Root) DropAdopted(ids []string) error {
	kept := slices.DeleteFunc(r.Marks.Adopted(), func(id string) bool { return slices.Contains(ids, id) })
	return r.saveAdopted(kept)
}

func (r *Root) saveAdopted(ids []string) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err := error(nil)
	if len(ids) == 0 {
		err = r.removeAdopted()
	} else {
		b, _ := json.Marshal(adoptedSandboxes{ids}) // strings always marshal
		err = writeTwins(r.Path(AdoptedFile), append(disk.Seal(b), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("adopted sandboxes: %w", err)
	}
	r.Marks.set(ids)
	return nil
}

// removeAdopted removes the file and its twin. One that a crash leaves counts: its sandboxes are gone, so
// the next agent removes it.
func (r *Root) removeAdopted() error {
	for _, path := range []string{r.Path(AdoptedFile), disk.TwinOf(r.Path(AdoptedFile))} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return disk.SyncDir(r.Dir)
}

// MarksIn returns the marks of the agent of a root dir, which may be running. What cannot be read
// marks nothing.
func MarksIn(dir string) *Marks {
	m := &Marks{}
	_, _ = disk.ReadTwin(filepath.Join(dir, instanceFile), parseInstance(&m.Instance))
	var is adoptedSandboxes
	if _, err := disk.ReadTwin(filepath.Join(dir, AdoptedFile), parseAdopted(&is)); err == nil {
		m.set(is.Sandboxes)
	}
	return m
}

// OfOthers returns an error if the root dir has pods, none of which any monopod accepted: it is a
// kubelet's, whose pods must be adopted first, as an agent removes what is left of pods that it does
// not know.
func OfOthers(dir string) error {
	for _, name := range []string{instanceFile, AdoptedFile} {
		if path := filepath.Join(dir, name); Exists(path) || Exists(disk.TwinOf(path)) {
			return nil
		}
	}
	r := &Root{Dir: dir}
	pods, _ := os.ReadDir(r.Path("pods"))
	pods = slices.DeleteFunc(pods, func(p os.DirEntry) bool { return !poduid.Valid(p.Name()) }) // as lost+found of a disk
	for _, p := range pods {
		for _, path := range []string{r.checkpoint(p.Name()), r.next(p.Name()), disk.AsideOf(r.checkpoint(p.Name()))} {
			if Exists(path) || Exists(disk.TwinOf(path)) {
				return nil
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return fmt.Errorf("root dir %s has pods of another agent, as a kubelet (such as pods/%.36s): take them over with `monopod adopt --yes`, or choose another with --root", dir, pods[0].Name())
}
