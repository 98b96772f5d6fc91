package safefile

import (
	"errors"
	"io/fs"
)

// MakeDirs makes the missing ones of the last depth of the folders that the path
// names, and returns the paths of those it made, innermost first. The folders
// above must exist. The path and depth are OpenDir's.
func MakeDirs(path string, depth int, perm fs.FileMode) (made []string, err error) {
	top, below := split(path, depth)
	d, err := OpenDir(top, 0)
	if err != nil {
		return nil, err
	}
	defer func() { d.Close() }()
	for _, name := range below {
		err := d.Mkdir(name, perm)
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
