package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the mounted cgroup file systems: with v2 one; with v1, or both (hybrid), one for each
// controller or group of controllers.
type tree struct {
	unified bool
	dirs    map[string]string // v1: mount point by controller; v2: all controllers the same
	all     []string          // every mount point; runtimes use more controllers than this package
	made    []string          // those in which this package creates cgroups
	mkdir   func(string) error
	rmdir   func(string) error
	write   func(file, value string) error

	isContainers func(dir string) bool // of v2
}

// governed are the controllers for which cgroups of pods are created, if the machine has them.
// systemd is not a controller but systemd's own hierarchy.
var governed = []string{"cpu", "cpuacct", "cpuset", "memory", "hugetlb", "pids", "systemd"}

// dirOf returns the folder of a cgroup in a hierarchy. Both paths are clean: filepath.Join would
// copy them thrice to find that out.
func dirOf(mount, path string) string { return mount + strings.TrimSuffix(path, "/") }

// openTree detects what is mounted at the mount point, usually /sys/fs/cgroup. It is v2 if the
// unified hierarchy is mounted there itself. cfg has all fields but those of names.
func openTree(cfg Config) (*tree, error) {
	mount := cfg.Mount
	t := &tree{dirs: map[string]string{}, mkdir: cfg.Mkdir, rmdir: cfg.Rmdir, write: cfg.Write, isContainers: cfg.IsContainers}
	offers, err := os.ReadFile(filepath.Join(mount, "cgroup.controllers"))
	if err == nil {
		t.unified, t.all = true, []string{mount}
		for _, c := range strings.Fields(string(offers)) {
			t.dirs[c] = mount
		}
		t.made = t.all
		return t, t.require("cpu", "memory")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(mount)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		dir, err := filepath.EvalSymlinks(filepath.Join(mount, e.Name()))
		if err != nil || !exists(filepath.Join(dir, "cgroup.procs")) {
			continue
		}
		if slices.Contains(governed, e.Name()) {
			t.dirs[e.Name()] = dir
		}
		if !slices.Contains(t.all, dir) {
			t.all = append(t.all, dir)
		}
	}
	for _, c := range governed {
		if d := t.dirs[c]; d != "" && !slices.Contains(t.made, d) {
			t.made = append(t.made, d)
		}
	}
	return t, t.require("cpu", "cpuacct", "cpuset", "memory")
}

func (t *tree) require(controllers ...string) error {
	for _, c := range controllers {
		if t.dirs[c] == "" {
			return fmt.Errorf("the controller %s is not there", c)
		}
	}
	return nil
}

// writable returns nil if cgroups can be created under path, which must exist.
func (t *tree) writable(path string) error {
	for _, mount := range t.made {
		dir := dirOf(mount, path)
		if err := unix.Access(dir, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: dir, Err: err}
		}
	}
	return nil
}

// exists reports whether a cgroup exists in all hierarchies with all its controllers.
func (t *tree) exists(path string) bool {
	for _, mount := range t.made {
		if !exists(dirOf(mount, path)) {
			return false
		}
	}
	return !t.unified || len(t.missing(path)) == 0
}

// make creates a cgroup and its missing parents.
func (t *tree) make(path string) error {
	if t.unified {
		return t.makeUnified(path)
	}
	for _, mount := range t.made {
		if err := t.makeIn(mount, path); err != nil {
			return err
		}
	}
	return nil
}

// makeIn creates a cgroup and its missing parents in one hierarchy of v1.
func (t *tree) makeIn(mount, path string) error {
	dir := dirOf(mount, path)
	err := t.mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && path != "/" {
		if err := t.makeIn(mount, filepath.Dir(path)); err != nil {
			return err
		}
		err = t.mkdir(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if mount == t.dirs["cpuset"] {
		if _, err := t.inherit(mount, path, "cpuset.cpus"); err != nil {
			return err
		}
		_, err := t.inherit(mount, path, "cpuset.mems")
		return err
	}
	return nil
}

// inherit returns the cpus or memory nodes of a cgroup. One without any, which accepts no process
// in v1, first gets those of its parent.
func (t *tree) inherit(mount, path, name string) (string, error) {
	file := dirOf(mount, path) + "/" + name
	own, err := read(file)
	if err != nil || own != "" || path == "/" {
		return own, err
	}
	above, err := t.inherit(mount, filepath.Dir(path), name)
	if err != nil {
		return "", err
	}
	return above, t.write(file, above)
}

// set writes as many values of a cgroup as it can. lacking is the error of those for which the
// kernel has no file, err that of the others.
func (t *tree) set(path string, r Resources) (lacking, err error) {
	var errs, lacks []error
	for _, f := range r.files(t.unified) {
		mount := t.dirs[f.controller]
		if mount == "" {
			continue
		}
		err := t.write(dirOf(mount, path)+"/"+f.name, f.value)
		isLacking := errors.Is(err, fs.ErrNotExist) && exists(dirOf(mount, path))
		switch {
		case err == nil || f.optional && errors.Is(err, fs.ErrNotExist):
		case isLacking:
			lacks = append(lacks, fmt.Errorf("%q: %w", f.value, err))
		default:
			errs = append(errs, fmt.Errorf("%q: %w", f.value, err))
		}
	}
	return errors.Join(lacks...), errors.Join(errs...)
}

// children returns the base names of the cgroups directly under path, in any hierarchy.
func (t *tree) children(path string) map[string]bool {
	out := map[string]bool{}
	for _, mount := range t.all {
		entries, _ := os.ReadDir(dirOf(mount, path))
		for _, e := range entries {
			if e.IsDir() {
				out[e.Name()] = true
			}
		}
	}
	return out
}

// there reports whether a cgroup exists in any hierarchy.
func (t *tree) there(path string) bool {
	return slices.ContainsFunc(t.all, func(mount string) bool { return exists(dirOf(mount, path)) })
}

// A folder may be busy for a moment after its last process has ended.
const (
	busyFirst = 5 * time.Millisecond
	busyTries = 8 // doubling, about 1.3 s in all
)

// remove removes a cgroup and those below from all hierarchies. The library is not used: it fails
// if there is a threaded cgroup below, deletes files where no cgroup file system is mounted, and
// for a busy cgroup reports that one of the kernel's files may not be deleted.
func (t *tree) remove(path string) error {
	var errs []error
	for _, mount := range t.all {
		for _, dir := range slices.Backward(walk(dirOf(mount, path))) {
			errs = append(errs, t.removeDir(dir))
		}
	}
	return errors.Join(errs...)
}

func (t *tree) removeDir(dir string) error {
	wait := busyFirst
	for try := 1; ; try++ {
		err := t.rmdir(dir)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, syscall.EBUSY) || try == busyTries:
			return err
		}
		time.Sleep(wait)
		wait *= 2
	}
}

// walk returns a folder and all folders below it, parents first.
func walk(top string) (dirs []string) {
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // removed meanwhile
	})
	return dirs
}
