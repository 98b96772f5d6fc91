package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openLock opens the file that is locked while an agent has a root dir, making
// it when there is none. It is going to be overwritten: a link is not followed,
// and nothing but a regular file is taken.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.EROFS) {
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a link: remove it", path)
	}
	if err != nil {
		return nil, err
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: remove it", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// holder returns the process that has a lock, as it wrote there.
func holder(lock *os.File) string {
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0) // to the end, or not all
	pid, _, _ := bytes.Cut(b[:n], []byte("\n"))
	return string(pid)
}
