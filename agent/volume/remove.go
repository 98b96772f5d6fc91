package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the open files of a removal: deeper directories are moved
// to the top and removed from there, however deep a container nested them.
const (
	maxDepth    = 64
	movedPrefix = ".removing-"
)

// remover removes the tree of one pod. It works on open directories, never on
// paths, and opens none that is a link or a mount.
type remover struct {
	ctx context.Context
	top *os.File
}

// removeDir removes a directory of pods, such as pods/<uid>, its directories before
// its files.
func removeDir(ctx context.Context, pods, uid string) error {
	parent, err := os.Open(pods)
	if err != nil {
		return err
	}
	defer parent.Close()
	top, err := openDir(parent, uid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path := filepath.Join(pods, uid)
	if err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	defer top.Close()
	r := &remover{ctx: ctx, top: top}
	err = r.empty(top, 0, true)
	if err == nil {
		err = r.empty(top, 0, false)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return unlink(parent, uid, unix.AT_REMOVEDIR)
}

// empty removes all below dir, or its directories only. It reads dir again
// until nothing is left, as removing while reading can hide entries.
func (r *remover) empty(dir *os.File, depth int, dirsOnly bool) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		removed := false
		for {
			names, err := dir.Readdirnames(256)
			for _, name := range names {
				if dirsOnly && !isDir(dir, name) {
					continue
				}
				removed = true
				if err := r.remove(dir, name, depth); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		if !removed {
			return nil
		}
	}
}

func isDir(dir *os.File, name string) bool {
	var s unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR
}

// remove removes one entry of dir with all below.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	child, err := openDir(dir, name)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return unlink(dir, name, 0)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("something is mounted at %s", name)
	case err != nil:
		return err
	}
	defer child.Close()
	if depth >= maxDepth {
		return unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), fmt.Sprintf("%s%x", movedPrefix, rand.Uint64()))
	}
	if err := r.empty(child, depth+1, false); err != nil {
		return err
	}
	return unlink(dir, name, unix.AT_REMOVEDIR)
}

func unlink(dir *os.File, name string, flags int) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, flags); err != nil && err != unix.ENOENT {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	return nil
}

// openDir opens a directory in another. A link gives ELOOP or ENOTDIR, a
// mount EXDEV.
func openDir(dir *os.File, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	fd, err := unix.Openat2(int(dir.Fd()), name, how)
	if err == unix.ENOSYS || err == unix.EPERM { // Linux before 5.6, or a filter that does not know the call
		return openDirOld(dir, name, flags)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openDirOld tells mounts by their device, so it sees no bind mounts of the
// same file system; for these there is the look at mountinfo before.
func openDirOld(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var a, b unix.Stat_t
	if err := errors.Join(unix.Fstat(int(dir.Fd()), &a), unix.Fstat(fd, &b)); err != nil {
		f.Close()
		return nil, err
	}
	if a.Dev != b.Dev {
		f.Close()
		return nil, unix.EXDEV
	}
	return f, nil
}

// RemoveRoot removes the root dir of an agent that is not to come again, with
// everything in it. It changes nothing while anything is mounted below.
func RemoveRoot(ctx context.Context, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	below, err := mountsBelow(root)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("cannot remove %s: something is mounted at %s", root, below[0].path)
	}
	return removeDir(ctx, filepath.Dir(root), filepath.Base(root))
}
