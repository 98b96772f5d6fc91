package disk

import (
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Symlink creates a link in the folder. It first removes an existing entry of that name, unless
// that is a folder. This package does not follow the link, but others may: the caller is
// responsible for the target.
func (d *Dir) Symlink(name, target string) error {
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := error(fs.ErrInvalid)
	if !strings.Contains(target, "\x00") {
		err = unix.Symlinkat(target, d.fd, name)
	}
	if err != nil {
		return pathError("make the link", d.Path(name), err)
	}
	return nil
}

// Readlink returns the target of a link in the folder.
func (d *Dir) Readlink(name string) (string, error) {
	var target [unix.PathMax]byte
	err := checkName(name)
	n := 0
	if err == nil {
		n, err = unix.Readlinkat(d.fd, name, target[:])
	}
	if err != nil {
		return "", pathError("read the link", d.Path(name), err)
	}
	return string(target[:n]), nil
}

// Again opens the same folder a second time.
func (d *Dir) Again() (*Dir, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", d.path, err)
	}
	return &Dir{fd: fd, path: d.path}, nil
}
