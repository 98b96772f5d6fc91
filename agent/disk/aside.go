package disk

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// AsideOf returns the path to which Aside moves the file or folder at a path.
func AsideOf(path string) string { return path + ".corrupt" }

// WithoutAside returns the name from which AsideOf made a name, and any other name unchanged.
func WithoutAside(name string) string { return strings.TrimSuffix(name, ".corrupt") }

// Aside moves what is at a path out of the way and replaces what was moved there before. It removes
// a file whose name is too long for that.
func Aside(path string) error {
	if err := removeAside(path); err != nil {
		return err
	}
	err := os.Rename(path, AsideOf(path))
	if errors.Is(err, unix.ENAMETOOLONG) {
		return os.RemoveAll(path)
	}
	return err
}

// removeAside removes what Aside moved from a path. A file whose name is too long for that has none.
func removeAside(path string) error {
	if err := os.RemoveAll(AsideOf(path)); !errors.Is(err, unix.ENAMETOOLONG) {
		return err
	}
	return nil
}

// replace is os.Rename for files. If there is a folder at path, which only a damaged disk causes,
// it moves the folder aside.
func replace(part, path string) error {
	err := unix.Renameat(unix.AT_FDCWD, part, unix.AT_FDCWD, path) // os.Rename looks at path each time
	if err == nil {
		return nil
	}
	if i, no := os.Lstat(path); no != nil || !i.IsDir() {
		return &os.LinkError{Op: "rename", Old: part, New: path, Err: err}
	}
	if err := Aside(path); err != nil {
		return err
	}
	return os.Rename(part, path)
}
