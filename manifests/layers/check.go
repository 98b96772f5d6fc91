package layers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Check returns why these folders cannot be read beside each other: two are one, or one is in
// another. The paths are absolute; what is not there counts by its path.
func Check(dirs []string) error {
	for k, dir := range dirs {
		for _, other := range dirs[:k] {
			if err := apart(other, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// apart returns how two folders overlap.
func apart(a, b string) error {
	at, bt := target(a), target(b)
	switch {
	case filepath.Clean(a) == filepath.Clean(b):
		return fmt.Errorf("%s is given twice: give each folder of manifests once", a)
	case at == bt || isSame(a, b):
		return fmt.Errorf("%s and %s are one folder: give one of the two", a, b)
	case isBelow(at, bt):
		return fmt.Errorf("%s is in %s: folders of manifests stand beside each other", b, a)
	case isBelow(bt, at):
		return fmt.Errorf("%s is in %s: folders of manifests stand beside each other", a, b)
	}
	return nil
}

// target returns where a path leads; the path of what is not there, as far as that is.
func target(path string) string {
	path = filepath.Clean(path)
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	if above := filepath.Dir(path); above != path {
		return filepath.Join(target(above), filepath.Base(path))
	}
	return path
}

// isSame reports whether two paths lead to one folder, as those of a bind mount do.
func isSame(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(x, y)
}

func isBelow(folder, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
