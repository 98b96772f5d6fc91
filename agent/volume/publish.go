package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names in a volume that shows the pod or objects. The files are in a directory
// "..<time>.<random>", to which dataLink leads. For the first element of each path there is a link
// through dataLink, so that one rename replaces all files.
const (
	dataLink  = "..data"
	newLink   = "..data_tmp"
	timeStamp = "..2006_01_02_15_04_05."
)

const (
	maxElement = 255  // bytes
	maxPath    = 4096 // bytes
)

// check cleans the paths and refuses those that would lead out of the volume or use one of its
// internal names.
func (p payload) check() error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		switch {
		case name == "" || strings.Contains(name, "\x00"):
			return fmt.Errorf("invalid path %q: it names no file", name)
		case path.IsAbs(name):
			return fmt.Errorf("invalid path %s: must be a relative path", name)
		case len(name) > maxPath:
			return fmt.Errorf("invalid path: longer than %d bytes", maxPath)
		case slices.Contains(strings.Split(name, "/"), ".."):
			return fmt.Errorf("invalid path %s: must not contain '..'", name)
		}
		clean := path.Clean(name)
		switch {
		case clean == ".":
			return fmt.Errorf("invalid path %s: it names no file", name)
		case strings.HasPrefix(clean, ".."):
			return fmt.Errorf("invalid path %s: must not start with '..'", name)
		case slices.ContainsFunc(strings.Split(clean, "/"), func(e string) bool { return len(e) > maxElement }):
			return fmt.Errorf("invalid path %s: a name in it is longer than %d bytes", name, maxElement)
		}
		if clean != name {
			f := p[name]
			delete(p, name)
			p[clean] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if _, isFile := p[above]; isFile {
				return fmt.Errorf("invalid path %s: another path of the volume is %s, which cannot be a file and a folder", name, above)
			}
		}
	}
	return nil
}

// publish makes a volume show exactly the payload; readers see the change at once for all files.
// Unchanged files are not written again. What a crash left incomplete is finished or removed.
// Nothing is synced: after a power cut the contents are compared, and written again if damaged.
func (s *setup) publish(ctx context.Context, p *place, want payload) error {
	now := p.version()
	p.clean(ctx, now)
	if now == "" || !p.shows(now, want) {
		next, err := p.write(want)
		if err != nil {
			return err
		}
		if err := errors.Join(s.own(ctx, p, readOnly), p.turnTo(ctx, next)); err != nil {
			return err
		}
		now = next
	}
	if err := p.link(want); err != nil {
		return err
	}
	p.clean(ctx, now)
	return nil
}

// version returns the directory that the volume shows, "" if none.
func (p *place) version() string {
	name, err := p.Readlink(dataLink)
	if err != nil || !isVersion(name) {
		return ""
	}
	if i, err := p.Lstat(name); err != nil || !i.IsDir() {
		return ""
	}
	return name
}

// isVersion reports whether a name has the form of a version's directory.
func isVersion(name string) bool {
	if len(name) <= len(timeStamp) || checkName("version", name) != nil {
		return false
	}
	_, err := time.Parse(timeStamp, name[:len(timeStamp)])
	return err == nil
}

// shows reports whether a version has exactly these files with this content.
func (p *place) shows(version string, want payload) bool {
	seen := 0
	err := fs.WalkDir(p.FS(), version, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, ok := want[strings.TrimPrefix(at, version+"/")]
		if !ok || !d.Type().IsRegular() {
			return fs.ErrInvalid
		}
		seen++
		if i, err := d.Info(); err != nil || i.Size() != int64(len(f.data)) {
			return fs.ErrInvalid
		}
		if has, err := p.ReadFile(at); err != nil || !bytes.Equal(has, f.data) {
			return fs.ErrInvalid
		}
		return nil
	})
	return err == nil && seen == len(want)
}

// write writes a new version, to which no link leads yet, and returns its name.
func (p *place) write(want payload) (version string, err error) {
	version = time.Now().UTC().Format(timeStamp) + fmt.Sprint(rand.Uint32())
	if err := p.mkdir(version); err != nil {
		return "", fmt.Errorf("make a directory in it: %w", unnamed(err))
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := p.writeFile(version, name, want[name]); err != nil {
			return "", fmt.Errorf("write %s: %w", name, unnamed(err))
		}
	}
	return version, nil
}

// unnamed returns an error without its path: each version has another name, but a lasting error
// must have one text, so that it is reported once.
func unnamed(err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return of.Err
	}
	if of := (*os.LinkError)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// writeFile writes a new file and creates its parent directories.
func (p *place) writeFile(version, name string, f file) error {
	at := version
	elements := strings.Split(name, "/")
	for _, e := range elements[:len(elements)-1] {
		at = path.Join(at, e)
		if err := p.mkdir(at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	out, err := p.OpenFile(path.Join(version, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.data)
	return errors.Join(err, out.Chmod(f.mode), out.Close()) // the umask removed bits at creation
}

// mkdir creates a directory that all users may read, independent of the umask.
func (p *place) mkdir(name string) error {
	if err := p.Mkdir(name, 0o755); err != nil {
		return err
	}
	return p.Chmod(name, 0o755)
}

// turnTo makes the volume show another version.
func (p *place) turnTo(ctx context.Context, version string) error {
	if i, err := p.Lstat(dataLink); err == nil && i.Mode()&fs.ModeSymlink == 0 {
		p.dir.RemoveAll(ctx, dataLink) // made by another program: here it is always a link
	}
	if err := p.Symlink(version, newLink); err != nil {
		return fmt.Errorf("link %s to the new files: %w", dataLink, unnamed(err))
	}
	return p.Rename(newLink, dataLink)
}

// link creates the links to the shown files, and removes those to files that are no longer shown.
// Other entries, such as a directory created for a subPath, stay unless one of them is in the way
// and has no files.
func (p *place) link(want payload) error {
	names := map[string]bool{}
	for name := range want {
		first, _, _ := strings.Cut(name, "/")
		names[first] = true
	}
	for name := range names {
		to := path.Join(dataLink, name)
		if has, err := p.Readlink(name); err == nil && has == to {
			continue
		}
		if err := p.removeFolders(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := p.Symlink(to, name); err != nil {
			return err
		}
	}
	return p.dir.Each(func(name string) error {
		if to, err := p.Readlink(name); err != nil || names[name] || to != path.Join(dataLink, name) {
			return nil
		}
		return p.Remove(name)
	})
}

// removeFolders removes an entry, and if that is a directory the directories in it, such as those of a
// subPath that was mounted before its file came. A directory with anything else in it stays, with an error.
func (p *place) removeFolders(name string) error {
	failed := p.Remove(name)
	if !errors.Is(failed, unix.ENOTEMPTY) {
		return failed
	}
	entries, err := fs.ReadDir(p.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			return failed
		}
		if err := p.removeFolders(path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return p.Remove(name)
}

// clean removes versions that the volume does not show, and the link that a crash left. What cannot
// be removed now, because a container mounted something in it, is tried again next time.
func (p *place) clean(ctx context.Context, keep string) {
	_ = p.dir.Each(func(name string) error {
		if name == newLink || isVersion(name) && name != keep {
			_ = p.dir.RemoveAll(ctx, name)
		}
		return ctx.Err()
	})
}
