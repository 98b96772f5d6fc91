package disk

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// newFile is a file that is being made. It is no os.File: that would have the poller of the network
// look at each, five system calls for a file that is written once.
type newFile struct {
	fd   int
	path string
}

// createTemp creates a file of mode 0600 with a name of its own in a folder.
func createTemp(dir string) (newFile, error) {
	for {
		name := TempPrefix + strconv.FormatUint(uint64(rand.Uint32()), 10)
		f, err := create(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// create creates a file of mode 0600.
func create(path string) (newFile, error) {
	for {
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		switch err {
		case nil:
			return newFile{fd, path}, nil
		case unix.EINTR:
		default:
			return newFile{}, pathError("open", path, err)
		}
	}
}

// fill writes, syncs and closes the file.
func (f newFile) fill(data []byte, perm fs.FileMode, synced bool) error {
	err := writeAll(f.fd, data)
	if err == nil && perm != 0o600 { // the mode at creation
		err = unix.Fchmod(f.fd, uint32(perm.Perm()))
	}
	if err == nil && synced {
		err = syncFile(f.fd)
	}
	return errors.Join(err, unix.Close(f.fd))
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil && err != unix.EINTR {
			return err
		}
		data = data[max(n, 0):]
	}
	return nil
}

// syncFile is fsync(2), counted.
func syncFile(fd int) error {
	syncs.Add(1)
	for {
		err := unix.Fsync(fd)
		if err != unix.EINTR {
			return err
		}
	}
}
