package once

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/disk"
	"monopod/agent/volume"
)

// rootPrefix starts the names of the root dirs of runs, in the folder for
// temporary files.
const rootPrefix = "monopod-once-"

// noteName is the file that marks the root dir of a run.
const noteName = "once.json"

// lockName is the file that an agent holds locked, see the package agent.
const lockName = "lock"

// noteMost is how large a note may be, in bytes.
const noteMost = 64 << 10

// Note is what is needed to remove what a run left.
type Note struct {
	Endpoint     string `json:"runtimeEndpoint"`
	NodeName     string `json:"nodeName"`
	CgroupDriver string `json:"cgroupDriver"`
	CgroupRoot   string `json:"cgroupRoot"`
	Managed      bool   `json:"managedRuntime,omitempty"` // the runtime was started for the run
	Keep         bool   `json:"keep,omitempty"`           // the run was to keep its pods
}

// MakeRoot makes the root dir of a run: dir, which must not exist or be an empty folder of
// this user that others cannot write to, or with "" one in the folder for temporary files.
func MakeRoot(dir string) (string, error) {
	parent := os.TempDir()
	if dir != "" {
		parent = filepath.Dir(filepath.Clean(dir))
	}
	parent, err := filepath.Abs(parent) // TMPDIR may be relative
	if err == nil {
		err = checkParent(parent)
	}
	switch {
	case err != nil:
	case dir == "":
		if dir, err = os.MkdirTemp(parent, rootPrefix); err != nil {
			err = fmt.Errorf("%w; say with TMPDIR or --dir where it can be made", err)
		}
	default:
		dir = filepath.Join(parent, filepath.Base(dir))
		if err = os.Mkdir(dir, 0o711); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		return "", fmt.Errorf("folder for the run: %w", err)
	}
	return dir, nil
}

// prepare prepares an existing folder for a run. It changes none that is not empty, that another
// user has or may write to, or that a link leads to.
func prepare(dir string) error {
	d, err := openRun(dir, os.Geteuid())
	if err != nil {
		return fmt.Errorf("%s cannot be taken: %w; name another with --dir, which need not exist", dir, err)
	}
	defer d.Close()
	if err := d.Each(func(string) error { return d.refuse(dir) }); err != nil {
		return err
	}
	// The root user of a pod with a user namespace has no rights here, and must
	// be able to pass through.
	return d.Chmod(0o711)
}

// refuse returns why a folder that is not empty is not taken, and what to do.
func (d *runDir) refuse(dir string) error {
	note, _, err := d.open(noteName)
	if err != nil {
		return fmt.Errorf("%s is not empty: name a folder that is, or one that does not exist", dir)
	}
	note.Close()
	if d.left() {
		return fmt.Errorf("a previous run in %s was killed, or kept its pods: %s removes what is left of it", dir, Removal(dir))
	}
	return fmt.Errorf("a run in %s goes on, or was killed as it began: name another folder, or if nothing runs there %s removes it", dir, Removal(dir))
}

// Claim writes the first note of a run. Of several runs that found the dir empty, one gets it. The
// note must exist before the agent makes anything outside of the dir, for a run that is killed then.
func (n Note) Claim(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, noteName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("folder for the run: another run starts in %s: name another folder", dir)
	}
	if err == nil {
		err = errors.Join(f.Close(), n.Write(dir))
	}
	if err != nil {
		_ = errors.Join(os.Remove(filepath.Join(dir, noteName)), os.Remove(dir))
		return fmt.Errorf("folder for the run: %w", err)
	}
	return nil
}

// Discard removes the dir of a run that has made nothing outside of it.
func Discard(ctx context.Context, dir string) error {
	return volume.RemoveRoot(context.WithoutCancel(ctx), dir)
}

// Write writes the note, replacing a previous one.
func (n Note) Write(dir string) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, noteName), append(b, '\n'), 0o600)
}

// ReadNote reads the note of a run of this user. Its error is one sentence for
// the user who named the dir.
func ReadNote(dir string) (Note, error) {
	var n Note
	d, err := openRun(dir, os.Geteuid())
	if err != nil {
		return n, fmt.Errorf("%s is not what `monopod once` left: %w", dir, err)
	}
	defer d.Close()
	b, err := d.read(noteName, noteMost)
	if errors.Is(err, fs.ErrNotExist) {
		return n, fmt.Errorf("%s is not what `monopod once` left: there is no %s in it", dir, noteName)
	}
	if err != nil {
		return n, err
	}
	if len(b) == 0 { // killed in Claim, which began nothing else
		return n, nil
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return n, fmt.Errorf("%s: %w", filepath.Join(dir, noteName), err)
	}
	return n, nil
}

// Left reports whether a run of this user in dir was killed, or kept its pods.
func Left(dir string) bool {
	d, err := openRun(dir, os.Geteuid())
	if err != nil {
		return false
	}
	defer d.Close()
	return d.left()
}

// Leftovers returns the root dirs of this user's runs that no process holds any more. It skips
// what other users made under such names.
func Leftovers() []string {
	tmp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil
	}
	var out []string
	_ = disk.Each(tmp, 0, func(name string) error { // other users may have made any number
		if !runName.MatchString(name) {
			return nil
		}
		dir := filepath.Join(tmp, name)
		if Left(dir) {
			out = append(out, dir)
		}
		return nil
	})
	slices.Sort(out)
	return out
}

// Fresh gives the pods new uids: the same manifests may run on this machine
// already, in another run or under an agent, and runtimes tell pods apart by uid.
// It must be called before the pods are used.
func Fresh(pods []*v1.Pod) {
	for _, p := range pods {
		id := make([]byte, 16)
		rand.Read(id)
		p.UID = types.UID(hex.EncodeToString(id))
		p.Annotations[annotationHash] = string(p.UID)
	}
}

// annotationHash is the annotation of a static pod with its uid.
const annotationHash = "kubernetes.io/config.hash"
