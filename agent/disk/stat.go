package disk

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what the kernel tells of an entry, not of what a link leads to.
type Stat struct{ unix.Stat_t }

// Stat looks at an entry.
func (d *Dir) Stat(name string) (s Stat, err error) {
	if err = checkName(name); err == nil {
		err = unix.Fstatat(d.fd, name, &s.Stat_t, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return s, pathError("stat", d.Path(name), err)
	}
	return s, nil
}

// Self looks at the folder itself.
func (d *Dir) Self() (s Stat, err error) {
	if err = unix.Fstat(d.fd, &s.Stat_t); err != nil {
		return s, pathError("stat", d.path, err)
	}
	return s, nil
}

// StatOf looks at an open file.
func StatOf(f *os.File) (s Stat, err error) {
	if err = unix.Fstat(int(f.Fd()), &s.Stat_t); err != nil {
		return s, pathError("stat", f.Name(), err)
	}
	return s, nil
}

// Lstat looks at a file, whose folders may be anyone's. It tells no more than
// what there is to see.
func Lstat(path string) (s Stat, err error) {
	if err = unix.Lstat(path, &s.Stat_t); err != nil {
		return s, pathError("stat", path, err)
	}
	return s, nil
}

func (s *Stat) kind() uint32 { return s.Mode & unix.S_IFMT }

// IsRegular, IsDir and IsLink tell what it is.
func (s *Stat) IsRegular() bool { return s.kind() == unix.S_IFREG }
func (s *Stat) IsDir() bool     { return s.kind() == unix.S_IFDIR }
func (s *Stat) IsLink() bool    { return s.kind() == unix.S_IFLNK }

// Size is in bytes.
func (s *Stat) Size() int64 { return s.Stat_t.Size }

// Changed returns when it was written to last.
func (s *Stat) Changed() time.Time { return time.Unix(s.Mtim.Unix()) }

// Same reports whether both are one file.
func (s *Stat) Same(o Stat) bool { return s.Dev == o.Dev && s.Ino == o.Ino }

// Regular returns an error unless it is a regular file.
func (s *Stat) Regular() error {
	switch {
	case s.IsRegular():
		return nil
	case s.IsLink():
		return ErrLink
	}
	return ErrNotRegular
}
