package stats

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// filesystem returns the usage of dir's file system, nil if it cannot be read.
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

// Free is the free space of a file system.
type Free struct {
	Capacity, Available uint64 // bytes
	Inodes, InodesFree  uint64 // 0, 0: the file system does not count them
}

// FreeOn returns the free space of dir's file system.
func FreeOn(dir string) (Free, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Free{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := uint64(fs.Bsize)
	return Free{fs.Blocks * size, fs.Bavail * size, fs.Files, fs.Ffree}, nil
}

// ownMemory reports whether dir is the root of a file system in memory, whose counters are those of
// its content.
func ownMemory(dir string) bool {
	var fs unix.Statfs_t
	var here, above unix.Stat_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC &&
		unix.Stat(dir, &here) == nil && unix.Stat(filepath.Dir(dir), &above) == nil && here.Dev != above.Dev
}

// part returns the usage of a folder within its file system.
func part(ctx context.Context, dir string) *space {
	s := filesystem(dir)
	if s == nil || ownMemory(dir) {
		return s
	}
	s.Used, s.InodesUsed = nil, nil
	if bytes, inodes, err := within(ctx, dir, 1); err == nil {
		s.Used, s.InodesUsed = known(bytes), known(inodes)
	}
	return s
}

// MountOf returns the mount point of dir's file system: the highest parent on the same device. It
// returns dir itself if dir cannot be read.
func MountOf(dir string) string {
	var here, above unix.Stat_t
	if unix.Stat(dir, &here) != nil {
		return dir
	}
	for dir != "/" && unix.Stat(filepath.Dir(dir), &above) == nil && above.Dev == here.Dev {
		dir = filepath.Dir(dir)
	}
	return dir
}
