package safefile

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// openat opens what has a name in an open folder, be it a link itself.
func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// reopen opens a file to read it that is open for its place only. Who holds a
// lease on it is not waited for: that is an error.
func reopen(place int) (int, error) {
	self := "/proc/self/fd/" + strconv.Itoa(place)
	for {
		fd, err := unix.Open(self, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
