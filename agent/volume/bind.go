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
	if done, err := freeTarget(target, want, mounts); done || err != nil {
		return target, err
	}
	if err := makeTarget(target, want.IsDir()); err != nil {
		return "", err
	}
	if err := unix.Mount(self(source), target, "", unix.MS_BIND, ""); err != nil {
		return "", &fs.PathError{Op: "bind", Path: target, Err: err}
	}
	if !s.Shared {
		// Otherwise the unmount of nested mounts in TearDown would propagate to the machine.
		if err := unix.Mount("", target, "", unix.MS_SLAVE, ""); err != nil {
			return "", &fs.PathError{Op: "make slave", Path: target, Err: err}
		}
	}
	return target, nil
}

// freeTarget unmounts the target, unless the right file is mounted there: then done is true.
func freeTarget(target string, want fs.FileInfo, mounts *mountTable) (done bool, err error) {
	has, err := mounts.below(target)
	if err != nil || len(has) == 0 {
		return false, err
	}
	if i, err := os.Stat(target); err == nil && os.SameFile(i, want) {
		return true, nil
	}
	for range has {
		if err := unmount(target); err != nil {
			return false, err
		}
	}
	return false, nil
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
