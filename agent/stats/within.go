package stats

import (
	"context"
	"errors"

	"monopod/agent/disk"
)

// maxFiles is how many files and folders of a volume on disk are counted; the usage of a larger one
// is not reported.
const maxFiles = 50_000

var errTooMany = errors.New("too many files to count")

// within returns the disk usage of the files in dir, without those on other file systems. A file
// with several names counts once. Others may write to the last depth folders of dir; their changes
// cannot lead the walk elsewhere.
func within(ctx context.Context, dir string, depth int) (bytes, inodes uint64, err error) {
	d, err := disk.OpenDir(dir, depth)
	if err != nil {
		return 0, 0, err
	}
	defer d.Close()
	top, err := d.Self()
	if err != nil {
		return 0, 0, err
	}
	c := fileCount{device: top.Dev, linked: map[uint64]bool{}}
	if err = c.take(top); err == nil {
		err = disk.Walk(ctx, d, c.visit)
	}
	return c.bytes, c.inodes, err
}

// fileCount is the usage of the files counted so far.
type fileCount struct {
	device        uint64
	linked        map[uint64]bool // counted files with several names, by inode
	bytes, inodes uint64
}

// take counts one file or folder.
func (c *fileCount) take(s disk.Stat) error {
	if s.Nlink > 1 && !s.IsDir() {
		if c.linked[s.Ino] {
			return nil
		}
		c.linked[s.Ino] = true
	}
	if c.inodes++; c.inodes > maxFiles {
		return errTooMany
	}
	c.bytes += uint64(s.Blocks) * 512
	return nil
}

// visit counts an entry of a walk. Entries that are removed meanwhile are left out.
func (c *fileCount) visit(f disk.Found) error {
	var s disk.Stat
	var err error
	switch f.Step {
	case disk.Leaf:
		s, err = f.In.Stat(f.Name)
	case disk.Enter:
		s, err = f.Folder.Self()
	default:
		return nil
	}
	if err != nil || s.Dev != c.device {
		return nil
	}
	return c.take(s)
}
