package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
)

// setUpHostPath checks the host path, and for some types creates it. It follows symbolic links: the
// path belongs to the machine's owner.
func setUpHostPath(h *v1.HostPathVolumeSource) (Mount, error) {
	if slices.Contains(strings.Split(h.Path, "/"), "..") {
		return Mount{}, fmt.Errorf("invalid hostPath %s: must not contain '..'", h.Path)
	}
	if h.Type != nil {
		if err := checkHostPath(h.Path, *h.Type); err != nil {
			return Mount{}, err
		}
	}
	return Mount{HostPath: h.Path}, nil
}

// lookAtHostPath makes the checks of setUpHostPath and creates nothing: a path that is to be
// created may be missing.
func lookAtHostPath(h *v1.HostPathVolumeSource) error {
	if h.Type == nil {
		return nil
	}
	kind := *h.Type
	if kind == v1.HostPathDirectoryOrCreate || kind == v1.HostPathFileOrCreate {
		if _, err := os.Stat(h.Path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	switch kind {
	case v1.HostPathDirectoryOrCreate:
		kind = v1.HostPathDirectory
	case v1.HostPathFileOrCreate:
		kind = v1.HostPathFile
	}
	return checkHostPath(h.Path, kind)
}

func checkHostPath(path string, t v1.HostPathType) error {
	const special = fs.ModeDevice | fs.ModeCharDevice
	is := func(mask, want fs.FileMode) func(fs.FileMode) bool {
		return func(m fs.FileMode) bool { return m&mask == want }
	}
	switch t {
	case v1.HostPathUnset:
		return nil
	case v1.HostPathDirectoryOrCreate:
		return check(path, "directory", fs.FileMode.IsDir, func() error { return disk.MkdirAll(path, 0o755) })
	case v1.HostPathDirectory:
		return check(path, "directory", fs.FileMode.IsDir, nil)
	case v1.HostPathFileOrCreate:
		return check(path, "file", fs.FileMode.IsRegular, func() error { return createFile(path) })
	case v1.HostPathFile:
		return check(path, "file", fs.FileMode.IsRegular, nil)
	case v1.HostPathSocket:
		return check(path, "socket file", is(fs.ModeSocket, fs.ModeSocket), nil)
	case v1.HostPathCharDev:
		return check(path, "character device", is(special, special), nil)
	case v1.HostPathBlockDev:
		return check(path, "block device", is(special, fs.ModeDevice), nil)
	default:
		return fmt.Errorf("%s is an invalid volume type", t)
	}
}

// check checks the file at the path against a type. It calls create, unless that is nil, if the
// path is missing.
func check(path, kind string, ok func(fs.FileMode) bool, create func() error) error {
	i, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && create != nil {
		if err := create(); err != nil {
			return err
		}
		i, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !ok(i.Mode()):
		return fmt.Errorf("hostPath type check failed: %s is not a %s", path, kind)
	default:
		return err
	}
}

func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o644), f.Close()) // the umask removed bits at creation
}
