package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// Directories of a pod are closed to other users, as their content may be open to all.
const dirMode = 0o750

// PodDir returns <root>/pods/<uid>.
func PodDir(root, uid string) string { return filepath.Join(root, "pods", uid) }

// ResolvPath returns the file that containers of the pod see as /etc/resolv.conf, if it follows the
// machine's.
func ResolvPath(root, uid string) string { return filepath.Join(PodDir(root, uid), "etc-resolv.conf") }

// HostsPath returns the file that containers of the pod see as /etc/hosts.
func HostsPath(root, uid string) string { return filepath.Join(PodDir(root, uid), "etc-hosts") }

// Prepare creates the pod's directories: its own, volumes and plugins.
func Prepare(root, uid string) error {
	if err := checkName("pod uid", uid); err != nil {
		return err
	}
	return errors.Join(makeDirs(root, "pods", uid, "volumes"), makeDirs(root, "pods", uid, "plugins"))
}

// makeDirs creates a directory for each element, each in the one before. If something else than a
// directory, for example a symbolic link, is in the way, it returns an error and creates nothing
// behind it.
func makeDirs(dir string, elements ...string) error {
	if makeLast(dir, elements) {
		return nil
	}
	at, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { at.Close() }()
	for _, e := range elements {
		dir = filepath.Join(dir, e)
		made := unix.Mkdirat(int(at.Fd()), e, dirMode)
		if made != nil && made != unix.EEXIST {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: made}
		}
		next, err := openElement(at, e)
		if err != nil && !errors.Is(err, unix.ELOOP) {
			return &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		at.Close()
		at = next
		if i, err := at.Stat(); err != nil || !i.IsDir() { // also true for nil, a link
			return fmt.Errorf("%s is in the way: not a directory", dir)
		}
		if made != nil {
			continue
		}
		if err := os.Chmod(self(at), dirMode); err != nil { // the umask removed bits
			return err
		}
	}
	return nil
}

// makeLast is makeDirs for the case that only the last directory is missing, with a third of the
// system calls; false: call makeDirs, which goes step by step.
func makeLast(dir string, elements []string) bool {
	above := len(elements) - 1
	in, err := disk.OpenDir(filepath.Join(dir, filepath.Join(elements[:above]...)), above)
	if err != nil {
		return false
	}
	defer in.Close()
	if in.MkdirExactly(elements[above], dirMode) == nil {
		return true
	}
	made, err := in.OpenDir(elements[above])
	if err == nil {
		made.Close()
	}
	return err == nil
}

// checkName refuses what, as a file name, would lead out of its directory.
func checkName(what, s string) error {
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		return fmt.Errorf("%s %q cannot be a file name", what, s)
	}
	return nil
}
