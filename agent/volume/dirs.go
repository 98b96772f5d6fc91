package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Directories of a pod are closed to users: what is below may be open to all.
const dirMode = 0o750

// maxMessage is how much of a termination message counts, from its end.
const maxMessage = 4096

// PodDir returns <root>/pods/<uid>.
func PodDir(root, uid string) string { return filepath.Join(root, "pods", uid) }

// HostsPath returns the file that containers of the pod see as /etc/hosts.
func HostsPath(root, uid string) string { return filepath.Join(PodDir(root, uid), "etc-hosts") }

// Prepare makes the pod's directories: itself, volumes and plugins.
func Prepare(root, uid string) error {
	if err := checkName("pod uid", uid); err != nil {
		return err
	}
	return errors.Join(makeDirs(root, "pods", uid, "volumes"), makeDirs(root, "pods", uid, "plugins"))
}

// makeDirs makes a directory for each element, one in the other. What is in
// the way and is no directory, a symbolic link included, is an error, and
// nothing is made through it.
func makeDirs(dir string, elements ...string) error {
	at, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { at.Close() }()
	for _, e := range elements {
		dir = filepath.Join(dir, e)
		if err := unix.Mkdirat(int(at.Fd()), e, dirMode); err != nil && err != unix.EEXIST {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
		}
		next, err := openElement(at, e)
		if err != nil && !errors.Is(err, unix.ELOOP) {
			return &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		at.Close()
		at = next
		if i, err := at.Stat(); err != nil || !i.IsDir() { // also of nil, a link
			return fmt.Errorf("%s is in the way: not a directory", dir)
		}
	}
	return nil
}

// checkName refuses what would leave its directory when used as a file name.
func checkName(what, s string) error {
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		return fmt.Errorf("%s %q cannot be a file name", what, s)
	}
	return nil
}

// TerminationLog makes a new empty file for one run of a container, open to
// all users, and returns its path.
func TerminationLog(root, uid, container string) (string, error) {
	if err := errors.Join(checkName("pod uid", uid), checkName("container", container)); err != nil {
		return "", err
	}
	if err := makeDirs(root, "pods", uid, "containers", container); err != nil {
		return "", err
	}
	path := filepath.Join(PodDir(root, uid), "containers", container, fmt.Sprintf("%08x", rand.Uint32()))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Chmod(0o666), f.Close()) // the umask took bits at creation
}

// TerminationMessage returns the end of a termination log, at most 4096
// bytes; "" if there is none. A container had the file in its hands, so
// nothing but a regular file is read.
func TerminationMessage(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil || !i.Mode().IsRegular() {
		return ""
	}
	b := make([]byte, maxMessage)
	n, _ := f.ReadAt(b, max(0, i.Size()-maxMessage)) // what could be read counts
	return string(b[:n])
}
