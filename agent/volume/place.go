package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
)

// Parents of the volumes of each kind. The marks of all kinds are with those of emptyDir.
const (
	emptyDirPlugin  = "kubernetes.io~empty-dir"
	configMapPlugin = "kubernetes.io~configmap"
	secretPlugin    = "kubernetes.io~secret"
	downwardPlugin  = "kubernetes.io~downward-api"
	projectedPlugin = "kubernetes.io~projected"
)

// EmptyDir returns the directory of a pod's emptyDir.
func EmptyDir(root, uid, volume string) string {
	return filepath.Join(PodDir(root, uid), "volumes", emptyDirPlugin, volume)
}

// place is the directory of a volume that the agent creates, on disk or in memory. Nothing in it
// can lead out of it, and no link on the way to it is followed.
type place struct {
	*os.Root
	dir   *disk.Dir // the same, for walks
	path  string    // on the machine
	mark  string    // a file that exists once mode and group are set; written last. "": the disk accepts none
	fresh bool      // there is no mark
}

// place creates and opens the directory of a volume. The caller closes it.
func (s *setup) place(plugin, volume, mark string, medium v1.EmptyDirVolumeSource) (*place, error) {
	if err := checkName("volume", volume); err != nil {
		return nil, err
	}
	uid := string(s.pod.UID)
	at := []string{"pods", uid, "volumes", plugin, volume}
	marks := []string{"pods", uid, "plugins", emptyDirPlugin, mark}
	p := &place{path: filepath.Join(s.root, filepath.Join(at...)), mark: filepath.Join(s.root, filepath.Join(marks...), "ready")}
	if err := makeDirs(s.root, marks...); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(p.path); errors.Is(err, fs.ErrNotExist) {
		if err := p.unmark(); err != nil {
			return nil, err
		}
	}
	if err := makeDirs(s.root, at...); err != nil {
		return nil, err
	}
	inMemory := medium.Medium != v1.StorageMediumDefault
	if inMemory {
		if err := s.mountMedium(p, at, medium); err != nil {
			return nil, err
		}
	}
	_, err := os.Lstat(p.mark)
	p.fresh = err != nil
	dir, err := s.open(at)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := p.openAt(dir); err != nil {
		return nil, err
	}
	if p.fresh && !inMemory { // a medium is mounted with its final mode
		if err := p.Chmod(".", 0o777); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// openAt opens the volume; dir is a reference to its directory (O_PATH).
func (p *place) openAt(dir *os.File) (err error) {
	if p.Root, err = os.OpenRoot(self(dir)); err != nil {
		return err
	}
	if p.dir, err = disk.DirOf(dir, p.path); err != nil {
		p.Root.Close()
	}
	return err
}

// Close closes both handles.
func (p *place) Close() { _, _ = p.Root.Close(), p.dir.Close() }

// ready writes the mark that mode and group are set, so that neither is changed again once
// containers use the volume.
func (p *place) ready() error {
	if !p.fresh || p.mark == "" {
		return nil
	}
	return disk.EnsureFile(p.mark, nil, 0o640)
}

// unmark removes the mark. What the mark is for must be made after that: otherwise an agent that is
// killed in between would leave a mark of what is not set up.
func (p *place) unmark() error {
	err := os.Remove(p.mark)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mountMedium mounts the volume's file system unless it is mounted already.
func (s *setup) mountMedium(p *place, at []string, e v1.EmptyDirVolumeSource) error {
	m, err := s.medium(e)
	if err != nil {
		return err
	}
	below, err := s.mounts.below(p.path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(p.path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(below, func(b mountPoint) bool { return b.path == real && b.kind == m.kind }) {
		return nil
	}
	if err := p.unmark(); err != nil {
		return err
	}
	dir, err := s.open(at)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, options := range m.options {
		if err = unix.Mount(m.source, self(dir), m.kind, 0, options); !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if err != nil {
		return &fs.PathError{Op: "mount " + m.kind, Path: p.path, Err: err}
	}
	return nil
}

// open opens a directory below the agent's root as a reference only (O_PATH).
func (s *setup) open(elements []string) (*os.File, error) {
	root, err := os.OpenFile(s.root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return openBelow(root, elements)
}

// self returns a path of an open file that stays valid if the file is moved.
func self(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
