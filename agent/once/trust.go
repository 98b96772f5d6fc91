package once

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// runDir is the root dir of a run, opened after a check that only this user can
// have written its content: all users may write to the folder for temporary
// files, and names of runs can be guessed.
type runDir struct {
	path string
	fd   int
	uid  uint32 // of the user whose it must be
}

// runName is the form of the names that MakeRoot gives.
var runName = regexp.MustCompile(`^` + rootPrefix + `[0-9]{1,20}$`)

// openRun opens the root dir of a run of the user uid. It neither follows a link
// nor blocks, for any type of file.
func openRun(path string, uid int) (*runDir, error) {
	if !runName.MatchString(filepath.Base(path)) {
		return nil, fmt.Errorf("its name is not %s and a number", rootPrefix)
	}
	if err := checkParent(filepath.Dir(path)); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, errors.New("it is a link, or no folder")
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := &runDir{path: path, fd: fd, uid: uint32(uid)}
	if err := d.check(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *runDir) close() { unix.Close(d.fd) }

// check refuses a dir of another user, one that others may write to, and one
// whose note or lock is not a file.
func (d *runDir) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	switch {
	case st.Uid != d.uid:
		return fmt.Errorf("it belongs to user %d, and this is user %d", st.Uid, d.uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %04o)", st.Mode&0o7777)
	}
	for _, name := range []string{noteName, lockName} {
		f, _, err := d.open(name)
		switch {
		case err == nil:
			f.Close()
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// open opens a file of the dir for reading, and tells its size.
func (d *runDir) open(name string) (f *os.File, size int64, err error) {
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, 0, fmt.Errorf("%s is a link", name)
	case err != nil:
		return nil, 0, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: err}
	}
	f = os.NewFile(uintptr(fd), filepath.Join(d.path, name))
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		err = &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
		f.Close()
		return nil, 0, err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		f.Close()
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	case st.Uid != d.uid:
		f.Close()
		return nil, 0, fmt.Errorf("%s belongs to user %d", name, st.Uid)
	}
	return f, st.Size, nil
}

// read returns the content of a file of the dir, unless it is larger than most.
func (d *runDir) read(name string, most int64) ([]byte, error) {
	f, _, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: it is larger than %d bytes", f.Name(), most)
	}
	return b, err
}

// left reports whether a run began here and none holds the dir any more.
func (d *runDir) left() bool {
	note, _, err := d.open(noteName)
	if err != nil {
		return false
	}
	note.Close()
	lock, size, err := d.open(lockName)
	if err != nil {
		return false
	}
	defer lock.Close()
	// An empty lock is one that a run makes just now: to hold it, if only for a
	// moment, would make that run fail.
	return size > 0 && unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

// checkParent refuses a folder in which any user can put something else in the
// place of a run's root dir.
func checkParent(dir string) error {
	i, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if i.Mode()&0o002 != 0 && i.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("every user may replace files in %s, as it lacks the sticky bit: `chmod +t %s`", dir, shellWord(dir))
	}
	return nil
}
