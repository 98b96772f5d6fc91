package disk

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveAll removes what is at a path with everything below, by a Walk: nothing through a link or a
// mount, for which it returns ErrMounted. A missing path is not an error. Others may write to what
// is removed, but not to the parent folder.
func RemoveAll(ctx context.Context, path string) error {
	d, err := OpenDir(filepath.Dir(path), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.RemoveAll(ctx, filepath.Base(path))
}

// RemoveAll removes an entry with everything below.
func (d *Dir) RemoveAll(ctx context.Context, name string) error {
	for {
		below, err := d.OpenBelow(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENAMETOOLONG): // nothing can have such a name
			return nil
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, ErrLink):
			return gone(d.Remove(name))
		case err != nil:
			return err
		}
		removed, err := below.empty(ctx, remove)
		if err == nil {
			err = d.removeFolder(name)
		}
		below.Close()
		if removed == 0 || !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
}

// Empty removes everything in a folder.
func (d *Dir) Empty(ctx context.Context) error { return d.until(ctx, remove) }

// EmptyFolders removes all folders in this one with everything below, but no other entries.
func (d *Dir) EmptyFolders(ctx context.Context) error {
	return d.until(ctx, func(f Found) error {
		if f.Step == Leaf && f.Depth == 1 {
			return errKept
		}
		return remove(f)
	})
}

// errKept means that an entry stays.
var errKept = errors.New("it stays")

// until repeats the removal until there is nothing left to remove: removing while reading can hide
// entries.
func (d *Dir) until(ctx context.Context, what func(Found) error) error {
	for {
		if n, err := d.empty(ctx, what); err != nil || n == 0 {
			return err
		}
	}
}

// empty removes the entries that it finds, and returns how many of them were directly in the
// folder.
func (d *Dir) empty(ctx context.Context, what func(Found) error) (n int, err error) {
	err = Walk(ctx, d, func(f Found) error {
		err := what(f)
		if errors.Is(err, errKept) {
			return nil
		}
		if f.Depth == 1 && err == nil && f.Step != Enter {
			n++
		}
		return err
	})
	return n, err
}

// remove removes an entry that a walk visits.
func remove(f Found) error {
	switch {
	case f.Step == Mounted:
		return pathError("remove", f.In.Path(f.Name), ErrMounted)
	case f.Step == Leaf:
		return gone(f.In.Remove(f.Name))
	case f.Step == Enter, f.Name == "": // that folder's next round finds it
		return nil
	}
	err := f.In.removeFolder(f.Name)
	if errors.Is(err, unix.ENOTEMPTY) {
		return ErrAgain
	}
	return err
}

func (d *Dir) removeFolder(name string) error {
	if err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR); err != nil && err != unix.ENOENT {
		return pathError("remove", d.Path(name), err)
	}
	return nil
}

// gone returns err, or nil if it means that the entry is missing.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OpenBelow opens a folder in this one that is neither a link nor a mount point.
func (d *Dir) OpenBelow(name string) (*Dir, error) {
	fd, _, err := d.enter(name)
	if err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	return &Dir{fd: fd, path: d.Path(name)}, nil
}
