package disk

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens a path of the agent's own.
func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// beneath opens a nested folder of an open one; none of the folders on the way may be a link. Any
// error means that the caller has to go step by step.
func beneath(dir int, names []string) (int, error) {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return -1, err
		}
	}
	return unix.Openat2(dir, strings.Join(names, "/"), &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
}

// openat opens an entry of an open folder; a link is opened itself.
func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// reopen opens for reading a file that is open as a reference only (O_PATH). It does not wait for
// the holder of a lease on the file: that is an error.
func reopen(place int) (int, error) {
	return open("/proc/self/fd/"+strconv.Itoa(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
}
