package disk

import (
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// GiveTo gives an entry of the folder to a group, and then sets its mode to the result of mode. Of
// a link it changes the group only. The error for a mount point is ErrMounted.
func (d *Dir) GiveTo(name string, group int, mode func(Stat) uint32) error {
	fd, err := d.openHere(name, unix.O_PATH)
	if err != nil {
		return pathError("open", d.Path(name), err)
	}
	defer unix.Close(fd)
	return give(fd, d.Path(name), group, mode)
}

// GiveSelfTo is GiveTo for the folder itself.
func (d *Dir) GiveSelfTo(group int, mode func(Stat) uint32) error {
	return give(d.fd, d.path, group, mode)
}

// Chmod sets the mode of the open folder itself, wherever its name leads meanwhile.
func (d *Dir) Chmod(perm fs.FileMode) error {
	if err := unix.Fchmod(d.fd, uint32(perm.Perm())); err != nil {
		return pathError("chmod", d.path, err)
	}
	return nil
}

// give changes an open file or folder, possibly open as a reference only (O_PATH).
func give(fd int, path string, group int, mode func(Stat) uint32) error {
	if err := unix.Fchownat(fd, "", -1, group, unix.AT_EMPTY_PATH); err != nil {
		return pathError("chown", path, err)
	}
	var s Stat
	if err := unix.Fstat(fd, &s.Stat_t); err != nil { // after the chown, which removes setgid bits
		return pathError("stat", path, err)
	}
	if s.IsLink() {
		return nil
	}
	if want := mode(s); want != s.Mode&0o7777 {
		if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), want); err != nil {
			return pathError("chmod", path, err)
		}
	}
	return nil
}
