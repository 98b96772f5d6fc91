package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// HasVolumes reports whether a pod has volumes of the agent's on this machine.
func HasVolumes(root, uid string) bool {
	_, err := os.Lstat(filepath.Join(PodDir(root, uid), "volumes"))
	return err == nil
}

// Release unmounts and removes the volumes of a pod, with all that is in them. Its
// other files stay. It may be called again, also for a pod that has none. If anything
// else is mounted below, it changes nothing and says so. Call it when no container of
// the pod is left that may run.
func Release(ctx context.Context, root, uid string) error {
	pods, dir, err := findPodDir(root, uid)
	if err != nil || dir == "" || !HasVolumes(root, uid) {
		return err
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return err
	}
	parent, err := os.Open(pods)
	if err != nil {
		return err
	}
	defer parent.Close()
	top, err := openDir(parent, uid)
	if err != nil {
		return &fs.PathError{Op: "remove volumes", Path: dir, Err: err}
	}
	defer top.Close()
	r := &remover{ctx: ctx, top: top}
	if err := r.volumes(); err != nil {
		return fmt.Errorf("remove volumes of %s: %w", dir, err)
	}
	return nil
}

// volumes removes the folders of volumes. That of the volumes themselves goes last: as
// long as it is there, HasVolumes says so.
func (r *remover) volumes() error {
	volumes, err := openDir(r.top, "volumes")
	if err != nil {
		return err
	}
	defer volumes.Close()
	if err := r.empty(volumes, 1, false); err != nil {
		return err
	}
	for _, name := range []string{subPathDir, "plugins"} {
		if err := r.remove(r.top, name, 0); err != nil {
			return err
		}
	}
	for left := true; left; {
		if left, err = r.removeMoved(); err != nil {
			return err
		}
	}
	return unlink(r.top, "volumes", unix.AT_REMOVEDIR)
}

// removeMoved removes what was moved to the top for being deep. It reports whether
// there was anything, which may have left more.
func (r *remover) removeMoved() (any bool, err error) {
	entries, err := os.ReadDir(self(r.top))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), movedPrefix) {
			any, err = true, errors.Join(err, r.remove(r.top, e.Name(), 0))
		}
	}
	return any, err
}
