package podhosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/panics"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// limit is the size in bytes up to which a file is updated.
const limit = 1 << 20

var newline = []byte("\n")

// errTooLarge reports that a container made its hosts file larger than limit.
var errTooLarge = fmt.Errorf("it is larger than %d bytes", limit)

// foreign are the errors of files that must not be changed.
var foreign = []error{disk.ErrLink, disk.ErrNotRegular, disk.ErrOtherNames, errTooLarge}

// Write writes a pod's hosts file for the containers that start from now on. own is the content
// that the pod's manifest determines, ips are the addresses of its sandbox. If pods are listed, the
// file is changed in place: the other containers of the pod have it mounted, and follow later
// changes. A nil Keeper writes, too.
func (k *Keeper) Write(path string, p *v1.Pod, ips []string, own []byte) error {
	if k == nil {
		return disk.EnsureFile(path, own, 0o644)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.config.On() {
		delete(k.files, p.UID)
		return errors.Join(disk.EnsureFile(path, own, 0o644), forget(path))
	}
	f := k.fileOf(p.UID)
	f.sum, f.ips = 0, ips
	k.look()
	k.files[p.UID] = f
	section, sum := k.section(p, own)
	whole := own
	if len(section) > 0 {
		whole = slices.Concat(bytes.TrimSuffix(own, newline), newline, section)
	}
	switch err := replace(path, whole); {
	case err == nil:
		f.sum = sum
		return forget(path)
	case holdsBut(path, own):
		k.done = 0 // the names are added when they can be written
		k.Wake()
		return nil
	default:
		return err
	}
}

// Rewrite replaces the content of a file that containers have mounted, in place if possible. One that
// a killed agent left incomplete is to be written again.
func Rewrite(path string, data []byte) error {
	if err := replace(path, data); err != nil {
		return err
	}
	return forget(path)
}

// replace replaces the content of a file, in place if possible.
func replace(path string, data []byte) error {
	f, err := disk.OpenInPlace(path)
	if err != nil {
		return disk.EnsureFile(path, data, 0o644)
	}
	defer f.Close()
	now, err := io.ReadAll(io.NewSectionReader(f, 0, int64(len(data))+1))
	if err == nil && !bytes.Equal(now, data) {
		err = rewrite(f, path, data)
	}
	return errors.Join(err, own(f))
}

// own restores the owner and the mode that a file was created with.
func own(f *os.File) error {
	s, err := disk.StatOf(f)
	if err != nil {
		return err
	}
	if int(s.Uid) != os.Geteuid() {
		err = f.Chown(os.Geteuid(), os.Getegid())
	}
	if s.Mode&0o7777 != 0o644 {
		err = errors.Join(err, f.Chmod(0o644))
	}
	return err
}

// holdsBut reports whether a file has the content that the pod's manifest determines, ignoring the
// section of pods.
func holdsBut(path string, own []byte) bool {
	f, err := disk.Open(path, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	now, err := disk.ReadAll(f, limit)
	rest := podspec.WithHostsOfPods(now, nil)
	return err == nil && bytes.Equal(bytes.TrimSuffix(rest, newline), bytes.TrimSuffix(own, newline))
}

// update changes the section of pods in a pod's file, if it has one, and nothing else. k.mu is
// held.
func (k *Keeper) update(r reader) (err error) {
	defer panics.Catch(&err)
	known := k.fileOf(r.UID)
	section, sum := k.section(r.Pod, podspec.EtcHosts(r.Pod, r.ips, k.config.Host()))
	if known.sum == sum {
		return nil
	}
	path := volume.HostsPath(k.config.Root, string(r.UID))
	f, err := disk.OpenInPlace(path)
	if err == nil {
		err = change(f, path, section)
		f.Close()
	}
	switch {
	case err == nil:
		known.sum = sum
	case errors.Is(err, fs.ErrNotExist):
		return nil // no container has been started, or the pod is being removed
	}
	return err
}

// change replaces the section of an open file. It keeps what a container wrote, and completes a
// write that a killed agent began.
func change(f *os.File, path string, section []byte) error {
	s, err := disk.StatOf(f)
	if err != nil {
		return err
	}
	if s.Size() > limit {
		return fmt.Errorf("%s: %w", path, errTooLarge)
	}
	now, err := disk.ReadAll(f, limit)
	if err != nil {
		return err
	}
	whole := now
	if unfinished, err := readNext(path); err != nil {
		return err
	} else if !bytes.HasPrefix(now, unfinished) {
		whole = unfinished
	}
	next := podspec.WithHostsOfPods(whole, section)
	switch {
	case len(next) > limit:
		return fmt.Errorf("%s: %w", path, errTooLarge)
	case bytes.Equal(now, next):
		return forget(path)
	}
	if err := rewrite(f, path, next); err != nil {
		return err
	}
	return forget(path)
}

// nextOf returns the path of the complete content of a file while it is written in place.
func nextOf(path string) string { return path + ".next" }

// readNext returns the content that a killed agent, or one with a full disk, did not write
// completely; nil if there is none.
func readNext(path string) ([]byte, error) {
	f, err := disk.Open(nextOf(path), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return disk.ReadAll(f, limit)
}

// rewrite writes a file in place. An agent that is killed meanwhile leaves it incomplete: the
// complete content is beside it until forget.
func rewrite(f *os.File, path string, data []byte) error {
	if err := disk.EnsureFile(nextOf(path), data, 0o600); err != nil {
		return err
	}
	s, err := disk.StatOf(f)
	if err == nil && s.Size() > int64(len(data)) { // first: complete content with a remainder after it counts as complete
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	return err
}

// forget removes the file that rewrite left beside a file.
func forget(path string) error {
	if !checkpoint.Exists(nextOf(path)) { // on a read-only disk a removal fails even if there is no file
		return nil
	}
	return os.Remove(nextOf(path))
}
