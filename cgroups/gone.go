package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Gone reports whether a pod's cgroup is missing, with v1 in one hierarchy at least. With
// an error that is not known: the cgroup cannot be looked at, or the file system that had
// it is not mounted any more.
func (m *Manager) Gone(c Class, uid string) (bool, error) {
	if err := checkUID(uid); err != nil {
		return false, err
	}
	path := m.names.Pod(c, uid)
	for _, mount := range m.tree.made() {
		_, err := os.Lstat(filepath.Join(mount, path))
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("look for cgroup %s: %w", path, err)
		default:
			err := m.tree.mounted(mount)
			return err == nil, err
		}
	}
	return false, nil
}

// mounted returns nil if the mount point still shows cgroups.
func (t *tree) mounted(mount string) error {
	file := "cgroup.procs"
	if t.unified {
		file = "cgroup.controllers"
	}
	if _, err := os.Lstat(filepath.Join(mount, file)); err != nil {
		return fmt.Errorf("cgroups at %s: %w", mount, err)
	}
	return nil
}
