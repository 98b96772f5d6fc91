package stats

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// filesystem returns how full the file system of dir is, nil if that cannot be told.
func filesystem(dir string) *space {
	var fs unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &fs) != nil {
		return nil
	}
	size := uint64(fs.Bsize)
	s := &space{Time: time.Now(),
		Capacity: known(fs.Blocks * size), Available: known(fs.Bavail * size), Used: known((fs.Blocks - fs.Bfree) * size)}
	if fs.Files > 0 { // some file systems do not count inodes
		s.Inodes, s.InodesFree, s.InodesUsed = known(fs.Files), known(fs.Ffree), known(fs.Files-fs.Ffree)
	}
	return s
}

// Free is what a file system has left.
type Free struct {
	Capacity, Available uint64 // bytes
	Inodes, InodesFree  uint64 // 0, 0: the file system does not count them
}

// FreeOn returns what the file system of dir has left.
func FreeOn(dir string) (Free, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Free{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := uint64(fs.Bsize)
	return Free{fs.Blocks * size, fs.Bavail * size, fs.Files, fs.Ffree}, nil
}

// ownMemory reports whether dir is a file system of its own in memory, whose
// numbers tell what is in it.
func ownMemory(dir string) bool {
	var fs unix.Statfs_t
	var here, above unix.Stat_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC &&
		unix.Stat(dir, &here) == nil && unix.Stat(filepath.Dir(dir), &above) == nil && here.Dev != above.Dev
}

// maxFiles is how many files and folders are counted of a volume on disk; what
// one with more takes is not told.
const maxFiles = 50_000

var errTooMany = errors.New("too many files to count")

// within returns what the files in dir take on the disk, no other file system's
// with them. A file with several names counts once.
func within(ctx context.Context, dir string) (bytes, inodes uint64, err error) {
	top, err := os.Lstat(dir)
	if err != nil {
		return 0, 0, err
	}
	device := top.Sys().(*syscall.Stat_t).Dev
	linked := map[uint64]bool{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		st := info.Sys().(*syscall.Stat_t)
		if st.Dev != device {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if st.Nlink > 1 && !d.IsDir() {
			if linked[st.Ino] {
				return nil
			}
			linked[st.Ino] = true
		}
		if inodes++; inodes > maxFiles {
			return errTooMany
		}
		bytes += uint64(st.Blocks) * 512
		return nil
	})
	return bytes, inodes, err
}

// part returns what a folder takes of its file system.
func part(ctx context.Context, dir string) *space {
	s := filesystem(dir)
	if s == nil || ownMemory(dir) {
		return s
	}
	s.Used, s.InodesUsed = nil, nil
	if bytes, inodes, err := within(ctx, dir); err == nil {
		s.Used, s.InodesUsed = known(bytes), known(inodes)
	}
	return s
}
