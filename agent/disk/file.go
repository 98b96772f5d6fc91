// Package disk opens, writes and removes files that others, or a power cut, may have tampered with.
//
// It follows no link, waits for no other process, reads regular files only, and writes to new files
// only, except OpenInPlace. Use Walk for folders that containers fill. WriteFile, ReplaceFile,
// ReplaceUnsynced and EnsureFile describe what a power cut may undo.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

var (
	// ErrLink means that a link is where a file or folder should be.
	ErrLink = errors.New("it is a link, and links are not followed here")
	// ErrNotRegular means that a pipe, a device or the like is where a file should be.
	ErrNotRegular = errors.New("it is not a regular file")
)

// configLimit is larger than files of credentials and the like, in bytes.
const configLimit = 1 << 20

// Open opens a regular file for reading. Others may write to the last depth elements of the path:
// with 1, to the file itself.
func Open(path string, depth int) (*os.File, error) {
	if depth == 0 {
		return openFile(unix.AT_FDCWD, path, path)
	}
	d, err := OpenDir(filepath.Dir(path), depth)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Open(filepath.Base(path))
}

// ReadConfig reads a file of at most 1 MiB that only the owner of the machine writes: it may be a
// link.
func ReadConfig(path string) ([]byte, error) {
	b, _, err := ReadSecret(path)
	return b, err
}

// ReadSecret is ReadConfig for a file that not all users may read: it also returns the permissions
// of the file.
func ReadSecret(path string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	b, err := ReadAll(f, configLimit)
	return b, fi.Mode().Perm(), err
}

// ReadAll reads an open file of at most limit bytes.
func ReadAll(f *os.File, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = pathError("read", f.Name(), fmt.Errorf("it is larger than %d bytes, the most that is read of it", limit))
	}
	return b, err
}

// Tail returns the end of a file, at most limit bytes. path and depth are Open's.
func Tail(path string, depth, limit int) ([]byte, error) {
	f, err := Open(path, depth)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(i.Size(), int64(limit)))
	n, err := f.ReadAt(b, i.Size()-int64(len(b)))
	if errors.Is(err, io.EOF) { // it was truncated meanwhile
		err = nil
	}
	return b[:n], err
}

// openFile opens a regular file by its name in an open folder.
func openFile(dir int, name, path string) (*os.File, error) {
	fd, _, err := openRegular(dir, name)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openRegular opens a regular file by its name in an open folder. It checks the type before it
// opens the file, as opening a device can have side effects; it opens the file through the
// reference that it checked, so that the file cannot be exchanged in between.
func openRegular(dir int, name string) (fd int, s Stat, err error) {
	place, err := openat(dir, name, unix.O_PATH)
	if err != nil {
		return -1, s, err
	}
	return openPlace(place)
}

// openPlace opens a file from a reference (O_PATH), and closes the reference. It opens no device
// and waits for no pipe.
func openPlace(place int) (fd int, s Stat, err error) {
	defer unix.Close(place)
	if err := unix.Fstat(place, &s.Stat_t); err != nil {
		return -1, s, err
	}
	if err := s.Regular(); err != nil {
		return -1, s, err
	}
	fd, err = reopen(place)
	return fd, s, err
}

// readWhole reads an open file of about that size, and of at most so many bytes.
func readWhole(fd int, size int64, most int) ([]byte, error) {
	b := make([]byte, 0, min(size, int64(most))+1) // one more shows the end
	for len(b) <= most {
		b = slices.Grow(b, 1)
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
	return nil, unix.EFBIG
}

func pathError(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: err}
}
