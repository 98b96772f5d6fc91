package stats

import (
	"context"
	"errors"
	"io/fs"

	"monopod/agent/safefile"
)

const (
	// maxFiles is how many files and folders are counted of a volume on disk; what
	// one with more takes is not told.
	maxFiles = 50_000
	// maxDepth bounds how deep folders may be nested: each is open while its
	// entries are counted.
	maxDepth = 128
)

var (
	errTooMany = errors.New("too many files to count")
	errTooDeep = errors.New("folders are too deep in each other to count")
)

// within returns what the files in dir take on the disk, no other file system's
// with them. A file with several names counts once. Others may write to the last
// depth of the folders that dir names; what they do meanwhile leads nowhere else.
func within(ctx context.Context, dir string, depth int) (bytes, inodes uint64, err error) {
	d, err := safefile.OpenDir(dir, depth)
	if err != nil {
		return 0, 0, err
	}
	defer d.Close()
	top, err := d.Self()
	if err != nil {
		return 0, 0, err
	}
	c := fileCount{ctx: ctx, device: top.Dev, linked: map[uint64]bool{}}
	if err = c.take(top); err == nil {
		err = c.walk(d, maxDepth)
	}
	return c.bytes, c.inodes, err
}

// fileCount is what files take, as far as they are counted.
type fileCount struct {
	ctx           context.Context
	device        uint64
	linked        map[uint64]bool // files with several names that were counted, by inode
	bytes, inodes uint64
}

// take counts one file or folder.
func (c *fileCount) take(s safefile.Stat) error {
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

// walk counts all below a folder. What goes meanwhile is left out.
func (c *fileCount) walk(d *safefile.Dir, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	return d.Each(func(name string) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		s, err := d.Stat(name)
		if err != nil || s.Dev != c.device {
			return nil
		}
		if err := c.take(s); err != nil || !s.IsDir() {
			return err
		}
		below, err := d.OpenDir(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, safefile.ErrLink):
			return nil
		case err != nil:
			return err
		}
		defer below.Close()
		return c.walk(below, depth-1)
	})
}
