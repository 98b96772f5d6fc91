package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// bind mounts the open file in its directory below the pod's directory.
func bind(root, uid string, source *os.File, s SubPathMount, mounts *mountTable) (string, error) {
	if err := makeDirs(root, "pods", uid, subPathDir, s.Volume, s.Container); err != nil {
		return "", err
	}
	target := filepath.Join(PodDir(root, uid), subPathDir, s.Volume, s.Container, strconv.Itoa(s.Index))
	want, err := source.Stat()
	if err != nil {
		return "", err
	}
	has, err := mounts.below(target)
	if err != nil {
		return "", err
	}
	if !isBound(target, want, s.Shared, has) {
		if err := bindAt(target, source, want.IsDir(), has); err != nil {
			return "", err
		}
	}
	if !s.Shared {
		err = makeSlave(target)
	}
	return target, err
}

// isBound reports whether the right file is mounted at the target, and shared if that is wanted. has
// are the mounts at the target and below.
func isBound(target string, want fs.FileInfo, shared bool, has []mountPoint) bool {
	if len(has) == 0 || shared && !has[0].shared {
		return false
	}
	i, err := os.Stat(target)
	return err == nil && os.SameFile(i, want)
}

// bindAt mounts the open file at the target in place of what is mounted there.
func bindAt(target string, source *os.File, dir bool, has []mountPoint) error {
	for _, m := range has {
		if m.path != has[0].path { // mounted in the volume, and goes with it
			continue
		}
		if err := makeSlave(m.path); err != nil {
			return err
		}
		if err := unix.Unmount(m.path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return &fs.PathError{Op: "unmount", Path: m.path, Err: err}
		}
	}
	if err := makeTarget(target, dir); err != nil {
		return err
	}
	if err := unix.Mount(self(source), target, "", unix.MS_BIND, ""); err != nil {
		return &fs.PathError{Op: "bind", Path: target, Err: err}
	}
	return nil
}

// makeSlave keeps unmounts of what is mounted below the target, as in TearDown, from propagating to
// the machine.
func makeSlave(target string) error {
	if err := unix.Mount("", target, "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return &fs.PathError{Op: "make slave", Path: target, Err: err}
	}
	return nil
}

// makeTarget creates an empty directory or file to mount on; it removes a left-over of the other
// kind.
func makeTarget(target string, dir bool) error {
	if i, err := os.Lstat(target); err == nil && i.IsDir() != dir {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if dir {
		return makeDirs(filepath.Dir(target), filepath.Base(target))
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o640)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o640), f.Close()) // the umask removed bits at creation
}
