package disk

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// AsideOf is where Aside moves what is at a path.
func AsideOf(path string) string { return path + ".corrupt" }

// WithoutAside returns the name of the file that AsideOf made a name of, and any other name
// as it is.
func WithoutAside(name string) string { return strings.TrimSuffix(name, ".corrupt") }

// Aside moves what is at a path out of the way, in place of what was moved there before.
// What has too long a name for that is removed.
func Aside(path string) error {
	if err := os.RemoveAll(AsideOf(path)); err != nil && !errors.Is(err, unix.ENAMETOOLONG) {
		return err
	}
	err := os.Rename(path, AsideOf(path))
	if errors.Is(err, unix.ENAMETOOLONG) {
		return os.RemoveAll(path)
	}
	return err
}

// replace is os.Rename for files. A folder where the new file belongs, which only a
// damaged disk has there, is put aside.
func replace(part, path string) error {
	err := os.Rename(part, path)
	if i, no := os.Lstat(path); err == nil || no != nil || !i.IsDir() {
		return err
	}
	if err := Aside(path); err != nil {
		return err
	}
	return os.Rename(part, path)
}
