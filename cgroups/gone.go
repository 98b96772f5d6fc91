package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Gone reports whether a pod's cgroup is missing, with v1 in at least one hierarchy. An error means
// that this is not known: the cgroup cannot be read, or its file system is no longer mounted.
func (m *Manager) Gone(c Class, uid string) (bool, error) {
	path, err := m.pod(c, uid)
	if err != nil {
		return false, err
	}
	var st unix.Stat_t
	for _, mount := range m.tree.made {
		err := lstat(dirOf(mount, path), &st)
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

// Missing returns those of the pods, by uid, whose cgroups are Gone. It lists the levels that hold
// them, which costs a fraction of looking for each, and fails if a level cannot be listed.
func (m *Manager) Missing(pods map[string]Class) (map[string]bool, error) {
	names := m.Names()
	if names.Driver == None {
		return nil, ErrNotSetUp
	}
	missing := map[string]bool{}
	for _, c := range classes {
		bases := map[string]string{} // by uid
		for uid, class := range pods {
			if class == c {
				bases[uid] = path.Base(names.Pod(c, uid))
			}
		}
		for _, mount := range m.tree.made {
			there, err := m.tree.list(mount, names.level(c))
			if err != nil {
				return nil, err
			}
			for uid, base := range bases {
				if !there[base] {
					missing[uid] = true
				}
			}
		}
	}
	return missing, nil
}

// list returns the base names of what a level has in one hierarchy: nothing, if the level is gone.
func (t *tree) list(mount, level string) (map[string]bool, error) {
	entries, err := os.ReadDir(dirOf(mount, level))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, t.mounted(mount)
	}
	if err != nil {
		return nil, fmt.Errorf("list cgroup %s: %w", level, err)
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	return there, nil
}

// mounted returns nil if cgroups are still mounted at the mount point.
func (t *tree) mounted(mount string) error {
	file := "cgroup.procs"
	if t.unified {
		file = "cgroup.controllers"
	}
	var st unix.Stat_t
	if err := lstat(filepath.Join(mount, file), &st); err != nil {
		return fmt.Errorf("cgroups at %s: %w", mount, err)
	}
	return nil
}

// AddTo adds a number of cgroups of pods of the class to a result of Counts.
func (c Class) AddTo(counts []uint64, more int) {
	for k := slices.Index(classes, c); k < len(counts); k += len(classes) {
		counts[k] += uint64(more)
	}
}

// Counts returns the number of folders in each cgroup that holds pods, in each hierarchy. While it
// does not change, as many cgroups of pods were created as removed. ok is false on file systems
// that do not count folders.
func (m *Manager) Counts() (counts []uint64, ok bool) {
	names := m.Names()
	if names.Driver == None {
		return nil, false
	}
	var levels []string
	for _, c := range classes {
		levels = append(levels, names.level(c))
	}
	var st unix.Stat_t
	for _, mount := range m.tree.made {
		for _, level := range levels {
			if err := lstat(dirOf(mount, level), &st); err != nil || st.Nlink < 2 {
				return nil, false
			}
			counts = append(counts, uint64(st.Nlink))
		}
	}
	return counts, true
}
