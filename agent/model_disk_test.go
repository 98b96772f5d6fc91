package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What may be wrong with the disk of the root dir.
const (
	diskWell     = ""
	diskFull     = "full"
	diskReadOnly = "read-only"
)

// testDisk is a file system of its own for an agent's root dir, which may be full or
// read-only for a while. Its zero value is a disk that cannot be spoiled.
type testDisk struct {
	at, root string
	trouble  string
	spoilt   bool // at some time
	lately   bool // since things calmed down
}

// mountDisk mounts a disk below dir. Only root can; ok is false for others.
func mountDisk(dir string) (d testDisk, ok bool) {
	at := filepath.Join(dir, "disk")
	if errors.Join(os.Mkdir(at, 0o700), unix.Mount("monopod-model", at, "tmpfs", 0, "size=2m")) != nil {
		return testDisk{}, false
	}
	return testDisk{at: at, root: filepath.Join(at, "root")}, true
}

func (d *testDisk) unmount() error {
	return errors.Join(d.mend(), unix.Unmount(d.at, unix.MNT_DETACH))
}

func (d *testDisk) spoil(how string) error {
	if err := d.mend(); err != nil || how == diskWell {
		return err
	}
	d.trouble, d.spoilt, d.lately = how, true, true
	if how == diskFull {
		return d.fill()
	}
	// Over the root dir itself: a disk with files that are open for writing cannot be
	// made read-only.
	err := unix.Mount(d.root, d.root, "", unix.MS_BIND, "")
	return errors.Join(err, unix.Mount("", d.root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// fill leaves no byte on the disk.
func (d *testDisk) fill() error {
	f, err := os.Create(filepath.Join(d.at, "ballast"))
	if err != nil {
		return err
	}
	defer f.Close()
	at := int64(0)
	for n := int64(2 << 20); n >= 4096; {
		err := unix.Fallocate(int(f.Fd()), 0, at, n)
		switch {
		case errors.Is(err, unix.ENOSPC):
			n /= 2
		case err != nil:
			return err
		default:
			at += n
		}
	}
	return nil
}

func (d *testDisk) mend() (err error) {
	switch d.trouble {
	case diskFull:
		err = os.Remove(filepath.Join(d.at, "ballast"))
	case diskReadOnly:
		err = unix.Unmount(d.root, unix.MNT_DETACH)
	}
	d.trouble = diskWell
	return err
}

// whole does what the world does to the root dir, not the agent: with a disk that is well.
func (d *testDisk) whole(do func() error) error {
	how := d.trouble
	err := errors.Join(d.mend(), do())
	if _, gone := os.Stat(d.root); errors.Is(gone, fs.ErrNotExist) {
		return err // an agent could make no new root dir on a disk that takes nothing
	}
	return errors.Join(err, d.spoil(how))
}

// spoilDisk makes the disk of the root dir full or read-only, or lets it be well again.
func (w *walk) spoilDisk() string {
	if w.disk.at == "" || !w.rooted() {
		return ""
	}
	how := pick(w.rand, diskWell, diskFull, diskFull, diskReadOnly, diskReadOnly)
	if how == w.disk.trouble {
		return ""
	}
	noErr(w.T, w.disk.spoil(how))
	if how == diskWell {
		return "the root dir's disk is well"
	}
	return "the root dir's disk is " + how
}

// rooted reports whether there is a root dir.
func (w *walk) rooted() bool {
	_, err := os.Stat(filepath.Join(w.dir, "instance"))
	return err == nil
}
