package volume

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// setGroup gives a directory and all below to a group: files become readable
// and writable for it, directories also searchable and setgid, so that new
// files belong to it. Links themselves change their group only. The deepest
// come first, so that a half done tree shows at its top.
func setGroup(dir string, gid int) error {
	root, err := os.OpenRoot(dir) // nothing in it can lead out of it
	if err != nil {
		return err
	}
	defer root.Close()
	var paths []string
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(paths) {
		if err := setGroupOf(root, path, gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func setGroupOf(root *os.Root, path string, gid int) error {
	if err := root.Lchown(path, -1, gid); err != nil {
		return err
	}
	i, err := root.Lstat(path) // after the chown, which drops setgid bits
	if err != nil || i.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	mode := i.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) | 0o660
	if i.IsDir() {
		mode |= 0o110 | fs.ModeSetgid
	}
	return root.Chmod(path, mode)
}
