package once

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
	"monopod/manifests/shell"
)

// runDir is the root dir of a run, opened after a check that only this user can have written its
// content: all users may write to the folder for temporary files, and names of runs can be
// guessed.
type runDir struct {
	*disk.Dir
	uid uint32 // of the user who must own it
}

// runName is the form of the names that MakeRoot gives in the folder for temporary files. A run
// may have its folder anywhere, so only the search there uses names.
var runName = regexp.MustCompile(`^` + rootPrefix + `[0-9]{1,20}$`)

// openRun opens the root dir of a run of the user uid. It neither follows a link
// nor blocks, for any type of file.
func openRun(path string, uid int) (*runDir, error) {
	if err := checkParent(filepath.Dir(path)); err != nil {
		return nil, err
	}
	dir, err := disk.OpenDir(path, 1)
	switch {
	case errors.Is(err, disk.ErrLink), errors.Is(err, unix.ENOTDIR):
		return nil, errors.New("it is a link, or no folder")
	case err != nil:
		return nil, err
	}
	d := &runDir{dir, uint32(uid)}
	if err := d.check(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// check refuses a dir of another user, one that others may write to, and one
// whose note or lock is not a file.
func (d *runDir) check() error {
	st, err := d.Self()
	switch {
	case err != nil:
		return err
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

// open opens a file of the dir for reading, and returns its size.
func (d *runDir) open(name string) (f *os.File, size int64, err error) {
	if f, err = d.Open(name); err != nil {
		return nil, 0, err
	}
	st, err := disk.StatOf(f)
	if err == nil && st.Uid != d.uid {
		err = fmt.Errorf("%s belongs to user %d", name, st.Uid)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// read returns the content of a file of the dir, unless it is larger than most.
func (d *runDir) read(name string, most int) ([]byte, error) {
	f, _, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return disk.ReadAll(f, most)
}

// left reports whether a run started here and no process holds the dir any more.
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
	return isFree(lock, size)
}

// isFree reports whether a run's process has gone and left this lock. An empty one belongs to a run that
// just starts: to hold it, even for a moment, would make that run fail. One that is in no folder any more
// was removed by its run, together with the dir, since it was opened here.
func isFree(lock *os.File, size int64) bool {
	if size == 0 || unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	st, err := disk.StatOf(lock)
	return err == nil && st.Nlink > 0
}

// checkParent refuses a folder in which any user can replace a run's root dir.
func checkParent(dir string) error {
	i, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if i.Mode()&0o002 != 0 && i.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("every user may replace files in %s, as it lacks the sticky bit: `chmod +t %s`", dir, shell.Word(dir))
	}
	return nil
}
