package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// TearDown unmounts what SetUp and SubPath mounted and moves the pod's directory into the trash,
// atomically. It may be called again, also for a pod without a directory. If anything else is
// mounted below, it changes nothing and returns an error. Call it once no container of the pod is
// left. A directory that cannot be moved is removed in place, the files directly in it, such as the
// checkpoint, last.
func TearDown(ctx context.Context, root, uid string) error {
	pods, dir, err := findPodDir(root, uid)
	if err != nil || dir == "" {
		return err
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if discard(root, dir) == nil {
		return nil
	}
	return removeDir(ctx, pods, uid)
}

// findPodDir returns the pod's directory and its parent; "" for a pod without one.
func findPodDir(root, uid string) (pods, dir string, err error) {
	if err := checkName("pod uid", uid); err != nil {
		return "", "", err
	}
	pods, err = filepath.EvalSymlinks(filepath.Join(root, "pods"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(pods, uid)
	i, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", nil
	case err != nil:
		return "", "", err
	case !i.IsDir():
		return "", "", fmt.Errorf("%s is not a directory", dir)
	}
	return pods, dir, nil
}

// unmountBelow unmounts the mounts of SetUp and SubPath, newest first. If there is any other mount
// below, it returns an error and unmounts nothing.
func unmountBelow(ctx context.Context, dir string) error {
	below, err := mountsBelow(dir)
	if err != nil || len(below) == 0 {
		return err
	}
	for _, m := range below {
		if !ours(dir, m) {
			return fmt.Errorf("cannot remove %s: something is mounted at %s", dir, m.path)
		}
	}
	for _, m := range below {
		if !m.shared || !strings.HasPrefix(m.path, filepath.Join(dir, subPathDir)+"/") {
			continue
		}
		if err := makeSlave(m.path); err != nil {
			return err
		}
	}
	for _, m := range slices.Backward(below) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := release(m); err != nil {
			return err
		}
	}
	below, err = mountsBelow(dir)
	if err == nil && len(below) > 0 {
		err = fmt.Errorf("cannot remove %s: %s is still mounted", dir, below[0].path)
	}
	return err
}

// ours reports whether the mount was made by SetUp or SubPath. What the machine or a container mounted
// in a hostPath is visible below its subPath, too: it is unmounted there alone.
func ours(dir string, m mountPoint) bool {
	rel, err := filepath.Rel(dir, m.path)
	if err != nil {
		return false
	}
	e := strings.Split(rel, "/")
	switch e[0] {
	case "volumes":
		if len(e) == 3 && m.kind == "hugetlbfs" {
			return e[1] == emptyDirPlugin
		}
		return len(e) == 3 && m.kind == "tmpfs" && slices.Contains([]string{emptyDirPlugin, secretPlugin, downwardPlugin, projectedPlugin}, e[1])
	case subPathDir:
		return len(e) >= 4
	default:
		return false
	}
}

// release unmounts one mount. A mount that a process still uses, such as a shell with its working
// directory there, is detached at once and ends with its last user; release does not wait for that.
func release(m mountPoint) error {
	err := unmount(m.path)
	if errors.Is(err, unix.EBUSY) {
		if err := unix.Unmount(m.path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
			return &fs.PathError{Op: "detach", Path: m.path, Err: err}
		}
		return nil
	}
	return err
}

func unmount(path string) error {
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "unmount", Path: path, Err: err}
	}
	return nil
}
