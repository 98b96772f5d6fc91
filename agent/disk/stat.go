package disk

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is the kernel's metadata of an entry; of a link itself, not of its target.
type Stat struct{ unix.Stat_t }

// Stat returns the metadata of an entry.
func (d *Dir) Stat(name string) (s Stat, err error) {
	if err = checkName(name); err == nil {
		err = unix.Fstatat(d.fd, name, &s.Stat_t, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return s, pathError("stat", d.Path(name), err)
	}
	return s, nil
}

// Self returns the metadata of the folder itself.
func (d *Dir) Self() (s Stat, err error) {
	if err = unix.Fstat(d.fd, &s.Stat_t); err != nil {
		return s, pathError("stat", d.path, err)
	}
	return s, nil
}

// StatOf returns the metadata of an open file.
func StatOf(f *os.File) (s Stat, err error) {
	if err = unix.Fstat(int(f.Fd()), &s.Stat_t); err != nil {
		return s, pathError("stat", f.Name(), err)
	}
	return s, nil
}

// Lstat returns the metadata of a file. Others may write to the folders of the path, so use the
// result for information only.
func Lstat(path string) (s Stat, err error) {
	if err = unix.Lstat(path, &s.Stat_t); err != nil {
		return s, pathError("stat", path, err)
	}
	return s, nil
}

func (s *Stat) kind() uint32 { return s.Mode & unix.S_IFMT }

// IsRegular, IsDir and IsLink report the type.
func (s *Stat) IsRegular() bool { return s.kind() == unix.S_IFREG }
func (s *Stat) IsDir() bool     { return s.kind() == unix.S_IFDIR }
func (s *Stat) IsLink() bool    { return s.kind() == unix.S_IFLNK }

// Size returns the size in bytes.
func (s *Stat) Size() int64 { return s.Stat_t.Size }

// Changed returns when the content was last modified.
func (s *Stat) Changed() time.Time { return time.Unix(s.Mtim.Unix()) }

// Same reports whether both are the same file.
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

// FileSystem returns the id of the file system of a folder, which most keep over a reboot; "": it has
// none.
func FileSystem(dir string) string {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	if id := fs.Fsid.Val; err == nil && id != [2]int32{} {
		return fmt.Sprintf("%08x%08x", uint32(id[0]), uint32(id[1]))
	}
	return ""
}
