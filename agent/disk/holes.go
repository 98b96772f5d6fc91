package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// NextData returns the beginning and the end of the next part of a file that is not a hole; if data
// is at least size, there is none.
func NextData(f *os.File, at, size int64) (data, hole int64, err error) {
	data, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if err == unix.ENXIO { // only a hole follows
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
