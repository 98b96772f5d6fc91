package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// NextData returns where the next part of a file of that size with content begins and ends; at
// and behind the size: there is none.
func NextData(f *os.File, at, size int64) (data, hole int64, err error) {
	data, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if err == unix.ENXIO { // nothing but a hole
		return size, size, nil
	}
	if err == nil {
		hole, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
	}
	if err == unix.EINVAL || err == unix.EOPNOTSUPP { // a file system without holes
		return at, size, nil
	}
	return min(data, size), min(hole, size), err
}
