package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MkdirAll creates a folder and its missing parents, each with exactly that mode, independent of
// the umask. Only the agent may be able to write to the folders above.
func MkdirAll(path string, perm fs.FileMode) error {
	if i, err := os.Stat(path); err == nil && i.IsDir() {
		return nil
	}
	if above := filepath.Dir(path); above != path {
		if err := MkdirAll(above, perm); err != nil {
			return err
		}
	}
	err := os.Mkdir(path, perm)
	if err == nil {
		return os.Chmod(path, perm)
	}
	if i, failed := os.Stat(path); errors.Is(err, fs.ErrExist) && failed == nil && i.IsDir() { // another process was faster
		return nil
	}
	return err
}

// MakeDirs creates the missing ones of the last depth folders of the path, each with exactly that
// mode, and returns the paths of those that it created, innermost first. The folders above must
// exist. path and depth are OpenDir's.
func MakeDirs(path string, depth int, perm fs.FileMode) (made []string, err error) {
	top, below := split(path, depth)
	d, err := OpenDir(top, 0)
	if err != nil {
		return nil, err
	}
	defer func() { d.Close() }()
	for _, name := range below {
		err := d.MkdirExactly(name, perm)
		if err == nil {
			made = append([]string{d.Path(name)}, made...)
		} else if !errors.Is(err, fs.ErrExist) {
			return made, err
		}
		next, err := d.OpenDir(name)
		if err != nil {
			return made, err
		}
		d.Close()
		d = next
	}
	return made, nil
}
