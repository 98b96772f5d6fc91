package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
	"monopod/agent/volume"
)

// Limits of one artifact: a container can make more than any machine holds.
const (
	maxCopied      = 1_000_000 // files and folders
	maxCopiedBytes = 16 << 30  // of content; holes in files are none
)

// copy copies the artifact out. It follows nothing outside of the volume, and leaves out what is
// neither a folder nor a file, links included, and what is mounted in the artifact. The folder of
// the copy may lie in the artifact, and is no part of the copy. Files with several names are one
// file in the copy, too, and holes stay holes.
func (a *Artifact) copy(ctx context.Context, root string) (left leftOut, err error) {
	from, file, err := a.open(root)
	if err != nil {
		return left, err
	}
	defer from.Close()
	if err := os.MkdirAll(a.to, 0o755); err != nil {
		return left, err
	}
	to, err := disk.OpenDir(a.to, 0)
	if err != nil {
		return left, err
	}
	defer to.Close()
	target, err := to.Self()
	if err != nil {
		return left, err
	}
	trail, err := disk.NewTrail(to)
	if err != nil {
		return left, err
	}
	defer trail.Close()
	c := &copying{ctx: ctx, to: to, target: target, trail: trail}
	if file == "" {
		err = c.folder(from)
	} else {
		err = c.file(from, file)
	}
	return c.left, errors.Join(err, c.close())
}

// open opens the folder of the artifact or, if that is a file, the folder that it is in.
func (a *Artifact) open(root string) (dir *disk.Dir, file string, err error) {
	top := volume.EmptyDir(root, string(a.pod.UID), a.volume.Name)
	if a.volume.HostPath != nil {
		top = a.volume.HostPath.Path
	}
	within, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", err
	}
	defer within.Close()
	at := path.Clean(a.within)
	info, err := within.Lstat(at)
	if err != nil {
		return nil, "", err
	}
	if !info.IsDir() {
		at, file = path.Split(at)
		at = path.Clean(at)
	}
	f, err := within.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	dir, err = disk.DirOf(f, at)
	return dir, file, err
}

// copying is one copy of an artifact.
type copying struct {
	ctx    context.Context
	to     *disk.Dir
	target disk.Stat   // of the folder of the copy
	trail  *disk.Trail // where in the copy it is, as deep as the walk
	left   leftOut

	count int
	bytes int64

	linked *disk.Dir // has the files with several names, under a name for each; nil: none yet
	name   string    // of that folder, which is no part of the copy
}

// folder copies everything in a folder. It must not read what is written to the copy as something
// to copy.
func (c *copying) folder(from *disk.Dir) error {
	is, err := c.isTarget(from)
	switch {
	case err != nil:
		return err
	case is:
		return errors.New("the folder to copy to is the one that is copied: name another")
	}
	return disk.Walk(c.ctx, from, c.visit)
}

// isTarget reports whether a folder is the one that is copied to, by any path.
func (c *copying) isTarget(dir *disk.Dir) (bool, error) {
	s, err := dir.Self()
	return err == nil && c.target.Same(s), err
}

// visit copies one object of a walk.
func (c *copying) visit(f disk.Found) error {
	switch f.Step {
	case disk.Enter:
		if is, err := c.isTarget(f.Folder); is || err != nil {
			return cmp.Or(err, disk.ErrSkip)
		}
		if err := c.counted(); err != nil {
			return err
		}
		if err := c.trail.Now().Mkdir(f.Name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return c.trail.Down(f.Name)
	case disk.Leave:
		return c.trail.Up()
	case disk.Mounted:
		c.left.add(f.In.Path(f.Name))
		return nil
	}
	return c.file(f.In, f.Name)
}

// counted counts one more file or folder.
func (c *copying) counted() error {
	if c.count++; c.count > maxCopied {
		return fmt.Errorf("it has more than %d files and folders, the most that are copied: "+
			"name a part of it, or let the container pack them into one file", maxCopied)
	}
	return nil
}

// file replaces a file by a copy.
func (c *copying) file(from *disk.Dir, name string) error {
	in, err := from.OpenOwn(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, disk.ErrLink), errors.Is(err, disk.ErrNotRegular), errors.Is(err, disk.ErrMounted):
		c.left.add(from.Path(name))
		return nil
	case err != nil:
		return err
	}
	defer in.Close()
	s, err := disk.StatOf(in)
	if err == nil {
		err = c.counted()
	}
	if err != nil || s.Nlink > 1 && c.link(s, name) {
		return err
	}
	out, err := c.trail.Now().Create(name, fs.FileMode(s.Mode&0o777|0o600))
	if err != nil {
		return err
	}
	if err := errors.Join(c.content(in, out, s.Size()), out.Close()); err != nil {
		return err
	}
	if s.Nlink > 1 {
		c.remember(s, name)
	}
	return nil
}

// content copies the content of a file, of a growing one what is there now, and no holes.
func (c *copying) content(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, hole, err := disk.NextData(in, at, size)
		if err != nil {
			return err
		}
		if c.bytes += hole - data; c.bytes > maxCopiedBytes {
			return fmt.Errorf("it has more than %d GiB, the most that is copied: "+
				"name a part of it, or let the container write to a hostPath", maxCopiedBytes>>30)
		}
		part := untilDone{c.ctx, io.NewSectionReader(in, data, hole-data)}
		if _, err := io.Copy(io.NewOffsetWriter(out, data), part); err != nil {
			return err
		}
		at = hole
	}
	return out.Truncate(size)
}

// untilDone reads until its context ends.
type untilDone struct {
	context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := context.Cause(r.Context); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// link adds the name to a file that was copied under another name; false: it was not copied.
func (c *copying) link(s disk.Stat, name string) bool {
	return c.linked != nil && c.trail.Now().Link(name, c.linked, keyOf(s)) == nil
}

// remember keeps a copy for its other names. On a file system without links, each name gets a copy
// of its own.
func (c *copying) remember(s disk.Stat, name string) {
	if c.linked == nil {
		c.name = fmt.Sprintf(".monopod-%x", rand.Uint64())
		if c.to.Mkdir(c.name, 0o700) != nil {
			return
		}
		c.linked, _ = c.to.OpenDir(c.name)
	}
	if c.linked != nil {
		_ = c.linked.Link(keyOf(s), c.trail.Now(), name)
	}
}

// keyOf tells files apart, also from one that has the inode of a removed one.
func keyOf(s disk.Stat) string { return fmt.Sprintf("%d-%d.%d", s.Ino, s.Ctim.Sec, s.Ctim.Nsec) }

// close removes what is no part of the copy.
func (c *copying) close() error {
	if c.linked != nil {
		c.linked.Close()
	}
	if c.name == "" {
		return nil
	}
	return c.to.RemoveAll(context.WithoutCancel(c.ctx), c.name)
}

// leftOut is what was not copied: the number, and the first of it by name.
type leftOut struct {
	names []string
	count int
}

const maxNamed = 20

func (l *leftOut) add(name string) {
	l.count++
	if len(l.names) < maxNamed {
		l.names = append(l.names, name)
	}
}

// String returns "a, b" or, of many, "a, b and 7 more".
func (l leftOut) String() string {
	text := strings.Join(l.names, ", ")
	if more := l.count - len(l.names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
