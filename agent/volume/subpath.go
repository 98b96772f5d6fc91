package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const subPathDir = "volume-subpaths"

// SubPathMount is a volumeMount with a subPath.
type SubPathMount struct {
	Volume    string
	Mount     Mount
	Container string
	Index     int    // in the container's volumeMounts
	Path      string // relative to the volume, without ".."
	Shared    bool   // mounts that the container makes below propagate to the machine (Bidirectional)
}

// subPathError is an error whose text names the mount and the reason but no paths of the machine;
// Unwrap returns the cause, with the paths.
type subPathError struct {
	text string
	err  error
}

func (e *subPathError) Error() string {
	var errno unix.Errno
	switch {
	case errors.Is(e.err, errLeadsOut):
		return e.text + ": " + errLeadsOut.Error()
	case errors.As(e.err, &errno):
		return e.text + ": " + errno.Error()
	}
	return e.text
}

func (e *subPathError) Unwrap() error { return e.err }

// SubPaths returns the host path of each mount, in the same order. It stops at the
// first error.
func SubPaths(root, uid string, all []SubPathMount) ([]string, error) {
	return subPaths(root, uid, all, newMountTable(PodDir(root, uid)))
}

func subPaths(root, uid string, all []SubPathMount, mounts *mountTable) (out []string, err error) {
	for _, s := range all {
		path, err := subPath(root, uid, s, mounts)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// subPath returns a host path that shows only s.Path, which it creates as a directory if it is
// missing. Links that containers put into the volume, before or meanwhile, cannot make it show
// anything outside of the volume: it is opened element by element without following links, and the
// open file is bound to a path in the pod's directory. An earlier bind of the same file is reused.
func subPath(root, uid string, s SubPathMount, mounts *mountTable) (string, error) {
	fail := func(what string, err error) (string, error) {
		return "", &subPathError{fmt.Sprintf("failed to %s for volumeMount %q of container %q", what, s.Volume, s.Container), err}
	}
	if err := errors.Join(checkName("pod uid", uid), checkName("volume", s.Volume), checkName("container", s.Container)); err != nil {
		return fail("prepare subPath", err)
	}
	elements, err := localElements(s.Path)
	if err != nil {
		return fail("prepare subPath", err)
	}
	base, err := filepath.EvalSymlinks(s.Mount.HostPath)
	if err != nil {
		return fail("prepare subPath", err)
	}
	if err := makeBelow(base, elements); err != nil {
		return fail("create subPath directory", err)
	}
	source, err := openResolved(base, filepath.Join(append([]string{base}, elements...)...))
	if err != nil {
		return fail("prepare subPath", err)
	}
	defer source.Close()
	target, err := bind(root, uid, source, s, mounts)
	if err != nil {
		return fail("prepare subPath", err)
	}
	return target, nil
}

// localElements splits a path that must stay within its volume.
func localElements(path string) ([]string, error) {
	var out []string
	for e := range strings.SplitSeq(path, "/") {
		switch e {
		case "", ".":
			continue
		case "..":
			return nil, fmt.Errorf("subPath %s contains '..'", path)
		}
		out = append(out, e)
	}
	if filepath.IsAbs(path) {
		return nil, fmt.Errorf("subPath %s is absolute", path)
	}
	return out, nil
}

// wholeMode is the part of the volume's mode that a subPath gets, as with the kubelet.
const wholeMode = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// makeBelow creates the missing part of the path, with the mode of the volume.
func makeBelow(base string, elements []string) error {
	i, err := os.Stat(base)
	if err != nil {
		return err
	}
	path := base
	for n, e := range elements {
		next := filepath.Join(path, e)
		if _, err := os.Lstat(next); err == nil {
			path = next
			continue
		}
		dir, err := openResolved(base, path)
		if err != nil {
			return err
		}
		defer dir.Close()
		return makeIn(dir, elements[n:], i.Mode()&wholeMode)
	}
	return nil
}

// makeIn creates nested directories, starting in an open one.
func makeIn(dir *os.File, elements []string, mode fs.FileMode) error {
	at := int(dir.Fd())
	for _, e := range elements {
		made := unix.Mkdirat(at, e, uint32(mode.Perm()))
		if made != nil && made != unix.EEXIST {
			return &fs.PathError{Op: "mkdir", Path: e, Err: made}
		}
		fd, err := unix.Openat(at, e, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: e, Err: err}
		}
		f := os.NewFile(uintptr(fd), e)
		defer f.Close()
		at = fd
		if made != nil {
			continue
		}
		if err := f.Chmod(mode); err != nil { // the umask removed bits
			return err
		}
	}
	return nil
}

// errLeadsOut means that links lead from a path in a volume out of it.
var errLeadsOut = errors.New("a link in the volume leads out of it")

// openResolved resolves the links of path, which must not lead out of base, and opens the result as
// a reference only (O_PATH) without following further links.
func openResolved(base, path string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(base, real)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s, to %s: %w", path, real, errLeadsOut)
	}
	fd, err := unix.Open(base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: base, Err: err}
	}
	f := os.NewFile(uintptr(fd), base)
	if rel == "." {
		return f, nil
	}
	return openBelow(f, strings.Split(rel, "/"))
}

// openBelow opens a path below a directory as a reference only (O_PATH), element by element,
// without following links. It closes the directory.
func openBelow(dir *os.File, elements []string) (*os.File, error) {
	for _, e := range elements {
		next, err := openElement(dir, e)
		dir.Close()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), e), Err: err}
		}
		dir = next
	}
	return dir, nil
}

// openElement opens one entry of a directory; a link is an error.
func openElement(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		f.Close()
		return nil, err
	}
	if s.Mode&unix.S_IFMT == unix.S_IFLNK { // O_PATH opens links themselves
		f.Close()
		return nil, unix.ELOOP
	}
	return f, nil
}
