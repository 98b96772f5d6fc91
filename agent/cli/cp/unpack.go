package cp

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"monopod/agent/disk"
)

// unpacking writes an untrusted archive into one folder of this machine. It goes from open folder
// to open folder and through no link at all, and makes no link that leads out, no device, and no
// mode bit that gives privileges.
type unpacking struct {
	copy *Copy
	ctx  context.Context
	dir  string // in the container, in which tar works
	base string // the beginning of each name; ".": none
	name string // of a file that goes into a folder: as named by the user, also through a link
	to   string // as named by the user

	top  *disk.Dir // nil: nothing is made yet
	file bool      // one file is copied, which lies in it
	at   string    // the path of the open folder in it
	in   *disk.Dir // that folder; nil: none is open
	left leftOut

	count int
	bytes int64
	size  int64 // with holes
}

const (
	maxSize = 1 << 40  // of all files with their holes: a larger size is meant to keep the machine busy
	block   = 32 << 10 // a part of a file that is zeros becomes a hole
	padding = 1 << 20  // what may follow the end of an archive
)

// archiveError is an error of the archive, or of its transfer.
type archiveError struct{ err error }

func (e *archiveError) Error() string {
	return "what tar sends is no archive of this: " + e.err.Error()
}
func (e *archiveError) Unwrap() error { return e.err }

// unpack writes the archive. If it contains only a link, it returns the link's target.
func (u *unpacking) unpack(r io.Reader) (target string, err error) {
	t := tar.NewReader(r)
	for {
		if err := context.Cause(u.ctx); err != nil {
			return "", err
		}
		h, err := t.Next()
		switch {
		case err == io.EOF && u.top == nil:
			err = u.rest(r) // tar prints why, and ends
			if err != nil {
				return "", err
			}
			return "", &archiveError{errors.New("it is empty")}
		case err == io.EOF:
			return "", u.rest(r)
		case err != nil:
			return "", &archiveError{err}
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		path, err := u.within(h.Name)
		switch {
		case err != nil:
		case u.top == nil && len(path) == 0 && h.Typeflag == tar.TypeSymlink:
			return h.Linkname, u.rest(r)
		case u.top == nil:
			err = u.first(h, t, path)
		default:
			err = u.entry(h, t, path)
		}
		if err != nil {
			return "", err
		}
	}
}

// rest reads what follows the end of the archive, so that tar ends.
func (u *unpacking) rest(r io.Reader) error {
	n, err := io.CopyN(io.Discard, r, padding)
	switch {
	case n == padding:
		return &archiveError{errors.New("it goes on behind its end")}
	case err != io.EOF:
		return &archiveError{err}
	}
	return nil
}

// within returns the elements of a name below what is copied.
func (u *unpacking) within(name string) (path []string, err error) {
	if strings.HasPrefix(name, "/") || len(name) > maxPath {
		return nil, &archiveError{fmt.Errorf("a name in it begins with / or is too long: %.100q", name)}
	}
	for _, e := range strings.Split(name, "/") {
		switch e {
		case "..":
			return nil, &archiveError{fmt.Errorf("a name in it leads out: %.100q", name)}
		case "", ".":
		default:
			path = append(path, e)
		}
	}
	if u.base == "." {
		return path, nil
	}
	if len(path) == 0 || path[0] != u.base {
		return nil, &archiveError{fmt.Errorf("a name in it is not below %q: %.100q", u.base, name)}
	}
	return path[1:], nil
}

// first writes the first entry, which is what the user named.
func (u *unpacking) first(h *tar.Header, content io.Reader, path []string) error {
	folder, there, err := isThere(u.to)
	switch {
	case err != nil:
		return err
	case len(path) > 0:
		return &archiveError{fmt.Errorf("it begins with %.100q", h.Name)}
	case h.Typeflag == tar.TypeDir && there && !folder:
		return fmt.Errorf("%s is not a folder, and a folder is copied", u.to)
	case h.Typeflag == tar.TypeDir:
		return u.open(u.to)
	case !isFile(h):
		return fmt.Errorf("%s is neither a file nor a folder", u.base)
	}
	dir, name := u.to, u.name
	if !folder && !strings.HasSuffix(u.to, "/") {
		if dir, name, err = resolved(u.to, there); err != nil {
			return err
		}
	}
	if err := u.open(dir); err != nil {
		return err
	}
	u.file = true
	return u.write(u.top, name, h, content)
}

// resolved returns the folder and the name of the target file, maybe by a link. An existing target
// is replaced, and must be a file for that.
func resolved(to string, there bool) (dir, name string, err error) {
	if there {
		if to, err = filepath.EvalSymlinks(to); err != nil {
			return "", "", err
		}
		i, err := os.Lstat(to)
		if err == nil && !i.Mode().IsRegular() {
			err = fmt.Errorf("%s is no file, and is not replaced", to)
		}
		if err != nil {
			return "", "", err
		}
	}
	return filepath.Dir(to), filepath.Base(to), nil
}

// open makes the folder that everything is written to, if it is missing.
func (u *unpacking) open(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		u.top, err = disk.OpenDir(dir, 0)
	}
	return err
}

func (u *unpacking) close() {
	if u.in != nil {
		u.in.Close()
	}
	if u.top != nil {
		u.top.Close()
	}
}

func isFile(h *tar.Header) bool {
	return h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeCont
}

// entry writes one more entry.
func (u *unpacking) entry(h *tar.Header, content io.Reader, path []string) error {
	if len(path) == 0 || u.file {
		return &archiveError{fmt.Errorf("it has more than was asked for, or that twice: %.100q", h.Name)}
	}
	if u.count++; u.count > maxCopied {
		return u.copy.tooMuch(fmt.Sprintf("%d files and folders", maxCopied))
	}
	in, err := u.folder(path[:len(path)-1], true)
	if err != nil {
		return err
	}
	name := path[len(path)-1]
	switch {
	case h.Typeflag == tar.TypeDir:
		return mkdir(in, name, fs.FileMode(h.Mode&0o777|0o700))
	case isFile(h):
		return u.write(in, name, h, content)
	case h.Typeflag == tar.TypeSymlink:
		return u.symlink(in, path, h.Linkname)
	case h.Typeflag == tar.TypeLink:
		return u.link(in, path, h)
	default:
		u.left.add("%s: neither a file, a folder nor a link", strings.Join(path, "/"))
	}
	return nil
}

// folder opens a folder in the target by its elements, and makes missing ones if it may.
func (u *unpacking) folder(path []string, missing bool) (*disk.Dir, error) {
	at := strings.Join(path, "/")
	if u.in != nil && u.at == at {
		return u.in, nil
	}
	d, err := u.top.Again()
	for _, name := range path {
		if err != nil {
			return nil, err
		}
		if missing {
			err = mkdir(d, name, 0o755)
		}
		above := d
		if err == nil {
			d, err = above.OpenDir(name)
		}
		above.Close()
	}
	if err != nil {
		return nil, err
	}
	if u.in != nil {
		u.in.Close()
	}
	u.at, u.in = at, d
	return d, nil
}

// mkdir makes a folder, if there is none.
func mkdir(in *disk.Dir, name string, mode fs.FileMode) error {
	err := in.Mkdir(name, mode)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	s, failed := in.Stat(name)
	switch {
	case failed != nil:
		return failed
	case s.IsLink():
		return fmt.Errorf("%s: %w", in.Path(name), disk.ErrLink)
	case !s.IsDir():
		return fmt.Errorf("%s is no folder, and a folder is copied", in.Path(name))
	}
	return nil
}

// staysBelow reports whether a link that lies so many folders deep does not lead out, with any
// links on the way: it goes up first, if at all, and only through folders.
func staysBelow(depth int, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || len(target) > maxPath {
		return false
	}
	down := false
	for _, e := range strings.Split(target, "/") {
		switch {
		case e == "" || e == ".":
		case e != "..":
			down = true
		case down || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

// symlink makes a link, unless it leads out.
func (u *unpacking) symlink(in *disk.Dir, path []string, target string) error {
	if !staysBelow(len(path)-1, target) {
		u.left.add("%s: a link that leads out, to %s", strings.Join(path, "/"), target)
		return nil
	}
	return in.Symlink(path[len(path)-1], target)
}

// link gives what is copied one more name. tar tells so of links and pipes, too: a link is made once
// more, as from elsewhere it may lead out, and the name of what was left out is left out.
func (u *unpacking) link(in *disk.Dir, path []string, h *tar.Header) error {
	first, err := u.within(h.Linkname)
	if err != nil {
		return err
	}
	if len(first) == 0 {
		return &archiveError{fmt.Errorf("%.100q is a name of a folder", h.Name)}
	}
	self, err := in.Again() // as it may be left for the other folder
	if err != nil {
		return err
	}
	defer self.Close()
	name, of := path[len(path)-1], first[len(first)-1]
	var s disk.Stat
	from, err := u.folder(first[:len(first)-1], false)
	if err == nil {
		s, err = from.Stat(of)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		u.left.add("%s: a name of %s, which is left out", strings.Join(path, "/"), strings.Join(first, "/"))
		return nil
	case err != nil:
		return err
	case s.IsLink():
		target, err := from.Readlink(of)
		if err != nil {
			return err
		}
		return u.symlink(self, path, target)
	case !s.IsRegular():
		return fmt.Errorf("%s: %w", from.Path(of), s.Regular())
	}
	if old, err := self.Stat(name); err == nil && old.Same(s) {
		return nil
	}
	return self.Link(name, from, of)
}

// write writes a new file in place of the one with its name.
func (u *unpacking) write(in *disk.Dir, name string, h *tar.Header, content io.Reader) error {
	if u.size += h.Size; h.Size > maxSize || u.size > maxSize {
		return u.copy.tooMuch("1 TiB with holes")
	}
	f, err := in.Create(name, fs.FileMode(h.Mode&0o777))
	if err != nil {
		return err
	}
	return errors.Join(u.content(f, content, h.Size), f.Close())
}

var zeros [block]byte

// content writes a file, except for parts that are zeros.
func (u *unpacking) content(f *os.File, content io.Reader, size int64) error {
	var part [block]byte
	for at := int64(0); at < size; {
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
		n, err := io.ReadFull(content, part[:min(size-at, block)])
		if err != nil {
			return &archiveError{err}
		}
		if !bytes.Equal(part[:n], zeros[:n]) {
			if u.bytes += int64(n); u.bytes > maxCopiedBytes {
				return u.copy.tooMuch(fmt.Sprintf("%d GiB", maxCopiedBytes>>30))
			}
			if _, err := f.WriteAt(part[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return f.Truncate(size)
}
