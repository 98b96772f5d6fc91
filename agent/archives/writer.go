package archives

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// beingWritten reports whether a process may have the file open for writing: the kernel grants a
// read lease only if none has. Network file systems never grant one.
func beingWritten(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // who reads it learns why
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return errors.Is(err, unix.EAGAIN)
}
