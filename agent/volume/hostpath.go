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
// created may be missing if it can be. folders are those that are created before it, without links in
// their paths.
func lookAtHostPath(h *v1.HostPathVolumeSource, folders []string) error {
	if h.Type == nil {
		return nil
	}
	kind := *h.Type
	switch kind {
	case v1.HostPathDirectoryOrCreate:
		kind = v1.HostPathDirectory
	case v1.HostPathFileOrCreate:
		kind = v1.HostPathFile
	}
	if kind != *h.Type {
		if _, err := os.Stat(h.Path); errors.Is(err, fs.ErrNotExist) {
			return canCreate(h.Path, kind, folders)
		}
	}
	return checkHostPath(h.Path, kind)
}

// canCreate checks that a missing file or directory can be created: a file only in a folder that is
// there, or that is one of folders or above one.
func canCreate(path string, kind v1.HostPathType, folders []string) error {
	real, above, err := destination(filepath.Clean(path), folders)
	if err != nil {
		return fmt.Errorf("%s cannot be created: %w", path, err)
	}
	parent := filepath.Dir(real)
	if kind == v1.HostPathFile && above != parent && !isCreated(parent, folders) {
		return fmt.Errorf("%s cannot be created: %s does not exist", path, parent)
	}
	if err := unix.Access(above, unix.W_OK); err != nil { // of root: its disk is mounted read-only
		return fmt.Errorf("%s cannot be created: %s: %w", path, above, err)
	}
	return nil
}

// isCreated reports whether a missing folder is one of folders, or above one.
func isCreated(missing string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(folder+"/", missing+"/") })
}

// destination returns where a clean path leads by the links on its way, and the nearest path above
// that which exists, or the path itself. A link to what is missing leads nowhere, unless it is one of
// folders, or above one.
func destination(path string, folders []string) (real, above string, err error) {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(real, rest), real, err
		}
		target, err := os.Readlink(path)
		if err == nil {
			real, above, err := behind(path, target, folders)
			return filepath.Join(real, rest), above, err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// behind is destination of a link's target that is missing.
func behind(link, target string, folders []string) (real, above string, err error) {
	if !filepath.IsAbs(target) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(link))
		if err != nil {
			return "", "", err
		}
		target = filepath.Join(dir, target)
	}
	real, above, err = destination(filepath.Clean(target), folders)
	if err == nil && !isCreated(real, folders) {
		err = fmt.Errorf("%s is a link to what does not exist", link)
	}
	return real, above, err
}

// isFolderToCreate reports whether a volume is a folder of the machine that is created if it is
// missing.
func isFolderToCreate(v *v1.Volume) bool {
	return v.HostPath != nil && v.HostPath.Type != nil && *v.HostPath.Type == v1.HostPathDirectoryOrCreate
}

// foldersFirst returns the volumes that containers mount in the order in which they are set up: the
// folders that are created before the files that may be in them.
func foldersFirst(p *v1.Pod) (all []*v1.Volume) {
	used := mounted(p)
	var others []*v1.Volume
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case !used[v.Name]:
		case isFolderToCreate(v):
			all = append(all, v)
		default:
			others = append(others, v)
		}
	}
	return append(all, others...)
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
