package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an open folder that others may write to. One goroutine uses it. Names are those of its
// entries, never paths.
type Dir struct {
	fd      int
	path    string // for errors
	listing listing
}

// OpenDir opens a folder. Others may write to the last depth folders of the path: none of these may
// be a link. The folders above belong to the agent or the machine's owner, and may be links.
func OpenDir(path string, depth int) (*Dir, error) {
	if depth == 0 {
		fd, err := open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, pathError("open", path, err)
		}
		return &Dir{fd: fd, path: path}, nil
	}
	top, below := split(path, depth)
	fd, err := open(top, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", top, err)
	}
	d := &Dir{fd: fd, path: top}
	if fd, err := beneath(d.fd, below); err == nil {
		d.Close()
		return &Dir{fd: fd, path: path}, nil
	}
	return d.walk(below) // works without openat2, and names the element that fails
}

// split splits a path into its last depth elements and the rest above.
func split(path string, depth int) (top string, below []string) {
	for range depth {
		below = append(below, filepath.Base(path))
		path = filepath.Dir(path)
	}
	slices.Reverse(below)
	return path, below
}

// walk opens a path below a folder, and closes that folder.
func (d *Dir) walk(below []string) (*Dir, error) {
	for _, name := range below {
		next, err := d.OpenDir(name)
		d.Close()
		if err != nil {
			return nil, err
		}
		d = next
	}
	return d, nil
}

// Close closes the folder.
func (d *Dir) Close() error {
	d.listing.end()
	return unix.Close(d.fd)
}

// Path returns the path of an entry, for messages.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// checkName refuses a text that cannot be the name of an entry.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fs.ErrInvalid
	}
	return nil
}

// OpenDir opens a folder in this one.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.ELOOP || err == unix.ENOTDIR {
		if s, failed := d.Stat(name); failed == nil && s.IsLink() {
			err = ErrLink
		}
	}
	if err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	return &Dir{fd: fd, path: d.Path(name)}, nil
}

// Open opens a regular file in the folder for reading.
func (d *Dir) Open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	return openFile(d.fd, name, d.Path(name))
}

// Create creates a new file and opens it for writing. It first removes an existing entry of that
// name, unless that is a folder.
func (d *Dir) Create(name string, perm fs.FileMode) (*os.File, error) {
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fd, err := unix.Openat(d.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	if err != nil {
		return nil, pathError("create", d.Path(name), err)
	}
	return os.NewFile(uintptr(fd), d.Path(name)), nil
}

// MkdirExactly creates a folder with exactly that mode, independent of the umask.
func (d *Dir) MkdirExactly(name string, perm fs.FileMode) error {
	if err := d.Mkdir(name, perm); err != nil {
		return err
	}
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		err = unix.Fchmod(fd, uint32(perm.Perm()))
		unix.Close(fd)
	}
	if err != nil {
		return pathError("chmod", d.Path(name), err)
	}
	return nil
}

// Mkdir creates a folder. The umask removes bits of the mode.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	err := checkName(name)
	if err == nil {
		err = unix.Mkdirat(d.fd, name, uint32(perm.Perm()))
	}
	if err != nil {
		return pathError("mkdir", d.Path(name), err)
	}
	return nil
}

// Remove removes an entry that is not a folder.
func (d *Dir) Remove(name string) error {
	err := checkName(name)
	if err == nil {
		err = unix.Unlinkat(d.fd, name, 0)
	}
	if err != nil {
		return pathError("remove", d.Path(name), err)
	}
	return nil
}

// Replace renames an entry and replaces another one by it.
func (d *Dir) Replace(from, to string) error { return d.renamed(from, to, d.rename(from, to, 0)) }

// Rename renames an entry and never replaces another: if there is one, the error is fs.ErrExist.
func (d *Dir) Rename(from, to string) error {
	err := d.rename(from, to, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // a file system without that flag
		if _, there := d.Stat(to); there == nil {
			err = unix.EEXIST
		} else {
			err = d.rename(from, to, 0)
		}
	}
	return d.renamed(from, to, err)
}

func (d *Dir) rename(from, to string, flags uint) error {
	if err := errors.Join(checkName(from), checkName(to)); err != nil {
		return err
	}
	if flags == 0 {
		return unix.Renameat(d.fd, from, d.fd, to)
	}
	return unix.Renameat2(d.fd, from, d.fd, to, flags)
}

func (d *Dir) renamed(from, to string, err error) error {
	if err != nil {
		return &os.LinkError{Op: "rename", Old: d.Path(from), New: d.Path(to), Err: err}
	}
	return nil
}

// SetTime sets when an entry was last modified.
func (d *Dir) SetTime(name string, at time.Time) error {
	t, err := unix.TimeToTimespec(at)
	if err = errors.Join(err, checkName(name)); err == nil {
		err = unix.UtimesNanoAt(d.fd, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return pathError("set the time of", d.Path(name), err)
	}
	return nil
}

// Sync makes changes of the folder's entries durable.
func (d *Dir) Sync() error {
	if err := unix.Fsync(d.fd); err != nil {
		return pathError("sync", d.path, err)
	}
	return nil
}

// Each calls do with the name of each entry until it returns an error, which Each returns. However
// many entries there are, few are held in memory.
func (d *Dir) Each(do func(name string) error) error {
	if err := d.listing.rewind(d.fd); err != nil {
		return pathError("read", d.path, err)
	}
	for {
		e, more, err := d.listing.next(d.fd)
		if err != nil {
			return pathError("read", d.path, err)
		}
		if !more {
			return nil
		}
		if err := do(e.name); err != nil {
			return err
		}
	}
}

// DirOf opens a folder that is already open, possibly as a reference only (O_PATH). path is for
// errors.
func DirOf(f *os.File, path string) (*Dir, error) {
	fd, err := open("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return &Dir{fd: fd, path: path}, nil
}

// OpenOwn is Open for a file that must not be a mount point: then the error is ErrMounted.
func (d *Dir) OpenOwn(name string) (*os.File, error) {
	place, err := d.openHere(name, unix.O_PATH)
	if err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	fd, _, err := openPlace(place)
	if err != nil {
		return nil, pathError("open", d.Path(name), err)
	}
	return os.NewFile(uintptr(fd), d.Path(name)), nil
}

// Link gives a file of another folder a name in this one. It first removes an existing entry of
// that name, unless that is a folder.
func (d *Dir) Link(name string, from *Dir, of string) error {
	err := errors.Join(checkName(name), checkName(of))
	if err == nil {
		err = unix.Linkat(from.fd, of, d.fd, name, 0)
	}
	if err == unix.EEXIST {
		if err = d.Remove(name); err == nil {
			err = unix.Linkat(from.fd, of, d.fd, name, 0)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "link", Old: from.Path(of), New: d.Path(name), Err: err}
	}
	return nil
}

// Each calls do with the name of each entry of a folder, in no order. path and depth are OpenDir's.
// A missing folder has no entries.
func Each(path string, depth int, do func(name string) error) error {
	d, err := OpenDir(path, depth)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Each(do)
}
