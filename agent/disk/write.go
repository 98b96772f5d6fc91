package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// TempPrefix is the prefix of the names of incomplete files, except those of EnsureFile. It is
// short on purpose: the final name may already be as long as a name can be.
const TempPrefix = ".tmp-"

// WriteFile writes data to path so that a reader, or a machine that loses
// power, sees either the old content or the new: a temporary file in the same
// folder, fsync, rename, fsync of the folder. The folder must exist.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	if err := ReplaceFile(path, data, perm); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceFile is WriteFile without the fsync of the folder: a power cut may restore the old
// content.
func ReplaceFile(path string, data []byte, perm fs.FileMode) error {
	return replaceFile(path, data, perm, true)
}

// ReplaceUnsynced is ReplaceFile without any fsync: a power cut may leave the old content, or none.
func ReplaceUnsynced(path string, data []byte, perm fs.FileMode) error {
	return replaceFile(path, data, perm, false)
}

// EnsureFile makes path a file of the agent's own with this content and mode. A file that is so
// already stays; of any other at most the length of data is read. A new file replaces it, and
// processes that have the old one open keep that. Only one goroutine of the agent may write to the
// folder at a time. A power cut may leave any content: call it again before each use.
func EnsureFile(path string, data []byte, perm fs.FileMode) error {
	if holds(path, data, perm) {
		return nil
	}
	// The name is fixed, so that the next call reuses it: these folders are not swept.
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	f, err := create(part)
	if errors.Is(err, fs.ErrExist) { // left by an agent that was killed
		if err := os.Remove(part); err != nil {
			return err
		}
		f, err = create(part)
	}
	if err != nil {
		return err
	}
	return complete(f, path, data, perm, false)
}

// holds reports whether a file is as EnsureFile would write it.
func holds(path string, data []byte, perm fs.FileMode) bool {
	fd, s, err := openRegular(unix.AT_FDCWD, path)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if s.Size() != int64(len(data)) || s.Mode&0o7777 != uint32(perm.Perm()) || int(s.Uid) != os.Geteuid() {
		return false
	}
	b, err := readWhole(fd, s.Size(), len(data))
	return err == nil && bytes.Equal(b, data)
}

// Written counts what this process has written with this package, except EnsureFile.
type Written struct{ Files, Bytes, Syncs int64 }

var files, bytesOf, syncs atomic.Int64

// WrittenSoFar returns the present counts.
func WrittenSoFar() Written { return Written{files.Load(), bytesOf.Load(), syncs.Load()} }

// Unwritable reports whether an error means that a disk accepts no data: it is full, over a quota
// or read-only, or fails. Its files may still be readable.
func Unwritable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// RemoveTemps removes the files that a killed WriteFile left in dir. There must be no writer in
// dir. A missing folder is not an error.
func RemoveTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// replaceFile replaces a file by a new one: completely or not at all while the machine has power,
// and, if synced, after a power cut, too.
func replaceFile(path string, data []byte, perm fs.FileMode, synced bool) error {
	f, err := createTemp(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, nameless(err))
	}
	err = complete(f, path, data, perm, synced)
	if err == nil {
		files.Add(1)
		bytesOf.Add(int64(len(data)))
	}
	return err
}

// complete writes to a new file of mode 0600, closes it and renames it to path.
func complete(f newFile, path string, data []byte, perm fs.FileMode, synced bool) error {
	err := f.fill(data, perm, synced)
	if err == nil {
		err = replace(f.path, path)
	}
	if err != nil {
		os.Remove(f.path)
		return fmt.Errorf("write %s: %w", path, nameless(err))
	}
	return nil
}

// nameless returns an error without the temporary file's random name, so that repeated errors are
// equal.
func nameless(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// SyncDir makes changes of a folder's entries durable.
func SyncDir(dir string) error {
	fd, err := open(dir, unix.O_RDONLY)
	if err == nil {
		err = errors.Join(syncFile(fd), unix.Close(fd))
	}
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
