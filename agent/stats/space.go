package stats

import (
	"context"
	"os"
	"path/filepath"
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
// counters are those of its content.
func ownMemory(dir string) bool {
	var fs unix.Statfs_t
	var here, above unix.Stat_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC &&
		unix.Stat(dir, &here) == nil && unix.Stat(filepath.Dir(dir), &above) == nil && here.Dev != above.Dev
}

// part returns what a folder takes of its file system.
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

// MountOf returns where the file system of dir is mounted: the folder farthest above it that is on
// the same device. It is dir itself if that cannot be told.
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
