package status

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"monopod/agent/safefile"
)

// tempPrefix starts the name of every file that is not complete yet. The name is
// short on purpose: the final name may already be as long as a name can be.
const tempPrefix = ".tmp-"

// WriteFile writes data to path so that a reader, or a machine that loses
// power, sees either the old content or the new: a temporary file in the same
// folder, fsync, rename, fsync of the folder. The folder must exist.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	if err := ReplaceFile(path, data, perm); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceFile is WriteFile without the fsync of the folder: a power cut may bring
// the old content back.
func ReplaceFile(path string, data []byte, perm fs.FileMode) error {
	return replaceFile(path, data, perm, true)
}

// Written counts what this process has written with this package.
type Written struct{ Files, Bytes, Syncs int64 }

var files, bytesOf, syncs atomic.Int64

// WrittenSoFar returns what has been written by now.
func WrittenSoFar() Written { return Written{files.Load(), bytesOf.Load(), syncs.Load()} }

// Sync is (*os.File).Sync, counted.
func Sync(f *os.File) error {
	syncs.Add(1)
	return f.Sync()
}

// Unwritable reports whether an error says that a disk takes no data: it is full,
// over a quota or read-only, or fails. Its files may still be readable.
func Unwritable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// RemoveTemps removes the files that a killed WriteFile left in dir. There must
// be no writer in dir. A folder that does not exist has nothing to remove.
func RemoveTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// replaceFile puts a new file in the place of one: whole or not at all while the
// machine has power, and after a power cut too if it is synced.
func replaceFile(path string, data []byte, perm fs.FileMode, synced bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, nameless(err))
	}
	if err := fill(f, data, perm, synced); err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, nameless(err))
	}
	if err := safefile.Replace(f.Name(), path); err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, nameless(err))
	}
	files.Add(1)
	bytesOf.Add(int64(len(data)))
	return nil
}

// nameless returns an error without the temporary file's random name, so that
// repeated errors are equal.
func nameless(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte, perm fs.FileMode, synced bool) error {
	_, err := f.Write(data)
	if err == nil && perm != 0o600 { // which it has
		err = f.Chmod(perm)
	}
	if err == nil && synced {
		err = Sync(f)
	}
	return errors.Join(err, f.Close())
}

// SyncDir makes the names in a folder survive a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	if err := errors.Join(Sync(d), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
