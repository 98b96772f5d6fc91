package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

const emptyDirPlugin = "kubernetes.io~empty-dir"

// setUpEmptyDir makes the directory, on disk or in memory. Its ready mark is
// written last and says that mode and group are set, so that neither is
// touched again once containers use it.
func setUpEmptyDir(dir string, p *v1.Pod, v *v1.Volume, memory int64) (Mount, error) {
	if err := checkName("volume", v.Name); err != nil {
		return Mount{}, err
	}
	path := filepath.Join(dir, "volumes", emptyDirPlugin, v.Name)
	mark := filepath.Join(dir, "plugins", emptyDirPlugin, v.Name, "ready")
	m := Mount{HostPath: path, Managed: true}
	for _, kind := range []string{"volumes", "plugins"} {
		if err := makeDirs(dir, kind, emptyDirPlugin, v.Name); err != nil {
			return Mount{}, err
		}
	}
	_, err := os.Lstat(mark)
	ready := err == nil
	if medium := v.EmptyDir; medium != nil && medium.Medium != v1.StorageMediumDefault {
		fresh, err := mountMedium(path, medium, memory)
		if err != nil {
			return Mount{}, err
		}
		ready = ready && !fresh
	}
	if ready {
		return m, nil
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return Mount{}, err
	}
	if s := p.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		if err := setGroup(path, int(*s.FSGroup)); err != nil {
			return Mount{}, err
		}
	}
	return m, os.WriteFile(mark, nil, 0o640)
}

// mountMedium mounts a tmpfs unless one is there; fresh tells that it was not.
func mountMedium(path string, e *v1.EmptyDirVolumeSource, memory int64) (fresh bool, err error) {
	switch {
	case e.Medium == v1.StorageMediumHugePages, strings.HasPrefix(string(e.Medium), string(v1.StorageMediumHugePagesPrefix)):
		return false, errors.New("a volume of huge pages is not supported yet")
	case e.Medium != v1.StorageMediumMemory:
		return false, fmt.Errorf("unknown storage medium %q", e.Medium)
	}
	below, err := mountsBelow(path)
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(below, func(m mountPoint) bool { return m.path == real && m.kind == "tmpfs" }) {
		return false, nil
	}
	limit := memory
	if s := e.SizeLimit; s != nil && s.Sign() > 0 && (limit <= 0 || s.Value() < limit) {
		limit = s.Value()
	}
	options := "mode=0777"
	if limit > 0 {
		options += fmt.Sprintf(",size=%d", limit)
	}
	err = unix.Mount("tmpfs", path, "tmpfs", 0, options+",noswap")
	if errors.Is(err, unix.EINVAL) { // Linux before 6.4, or a user namespace
		err = unix.Mount("tmpfs", path, "tmpfs", 0, options)
	}
	if err != nil {
		return false, &fs.PathError{Op: "mount tmpfs", Path: path, Err: err}
	}
	return true, nil
}
