package disk

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrOtherNames means that a file has another name, through which it may belong to another user.
var ErrOtherNames = errors.New("it has another name, too")

// OpenInPlace opens a regular file for reading and writing, for files that other processes have
// open or mounted. The folder must be the agent's own. The file may have any size, and others may
// write to it at the same time.
func OpenInPlace(path string) (*os.File, error) {
	place, err := Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	s, err := StatOf(place)
	if err != nil {
		return nil, err
	}
	if s.Nlink != 1 {
		return nil, pathError("open", path, ErrOtherNames)
	}
	fd, err := open("/proc/self/fd/"+strconv.Itoa(int(place.Fd())), unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
