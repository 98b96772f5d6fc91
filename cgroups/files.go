package cgroups

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel's files are read and written without os.File: that would have the poller of the
// network look at each, and takes room for the name and the state of each.

// lstat is os.Lstat into a variable of the caller.
func lstat(path string, st *unix.Stat_t) error {
	if err := unix.Lstat(path, st); err != nil {
		return &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return nil
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}

// read returns the content of a file, without space around it.
func read(path string) (string, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var part [512]byte
	text := ""
	for {
		n, err := unix.Read(fd, part[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return strings.TrimSpace(text), nil
		default:
			text += string(part[:n])
		}
	}
}

// write writes a value in a single call, as the kernel requires. It never creates a file.
func write(path, value string) error {
	fd, err := open(path, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return err
	}
	err = writeAtOnce(fd, value)
	err = errors.Join(err, unix.Close(fd))
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

func writeAtOnce(fd int, value string) error {
	for {
		n, err := unix.Write(fd, []byte(value))
		switch {
		case err == unix.EINTR:
		case err == nil && n < len(value):
			return io.ErrShortWrite
		default:
			return err
		}
	}
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		default:
			return fd, nil
		}
	}
}
