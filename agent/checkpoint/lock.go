package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// openLock opens or creates the lock file of a root dir. The file is overwritten
// later, so it must be a regular file, and links are not followed.
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

// A question takes far less time than questionMost; an agent looks each questionPause whether it is over.
const (
	questionMost  = 2 * time.Second
	questionPause = 5 * time.Millisecond
)

// lockAlone takes the lock of an agent. It waits while only Holder has the file locked, whose lock is a
// shared one; an error means that an agent has it.
func lockAlone(lock *os.File) error {
	for until := time.Now().Add(questionMost); ; time.Sleep(questionPause) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || time.Now().After(until) || isLockedAlone(lock) {
			return err
		}
	}
}

// isLockedAlone reports whether another process has the lock for itself.
func isLockedAlone(lock *os.File) bool {
	err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN)
	}
	return err != nil
}

// holder returns the id of the process that holds the lock, from the lock file.
func holder(lock *os.File) string {
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0) // the error is io.EOF, or the result is incomplete
	pid, _, _ := bytes.Cut(b[:n], []byte("\n"))
	return string(pid)
}

// Holder returns the id of the process that has locked the root dir in dir; "": none.
func Holder(dir string) string {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return ""
	}
	return cmp.Or(holder(f), "of unknown id")
}
