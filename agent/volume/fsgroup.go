package volume

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// What the group of a volume may do with its files.
const (
	readWrite fs.FileMode = 0o660
	readOnly  fs.FileMode = 0o440
)

// own gives the volume to the pod's group, if it names one.
func (s *setup) own(p *place, may fs.FileMode) error {
	if c := s.pod.Spec.SecurityContext; c != nil && c.FSGroup != nil {
		return setGroup(p.Root, int(*c.FSGroup), may)
	}
	return nil
}

// setGroup gives a directory and all below to a group: files get the mode
// bits of may in addition to their own, directories become also searchable and
// setgid, so that new files belong to it. Links themselves change their group
// only. The deepest come first, so that a half done tree shows at its top.
func setGroup(root *os.Root, gid int, may fs.FileMode) error {
	var paths []string
	err := fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
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
		if err := setGroupOf(root, path, gid, may); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func setGroupOf(root *os.Root, path string, gid int, may fs.FileMode) error {
	if err := root.Lchown(path, -1, gid); err != nil {
		return err
	}
	i, err := root.Lstat(path) // after the chown, which drops setgid bits
	if err != nil || i.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	mode := i.Mode()&wholeMode | may
	if i.IsDir() {
		mode |= 0o110 | fs.ModeSetgid
	}
	return root.Chmod(path, mode)
}
