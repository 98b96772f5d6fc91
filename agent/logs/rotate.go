package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// find finds the log of a container that is not where it should be. Either the
// container was made when logs had another place, or somebody renamed the log
// and did not come to have it reopened, or removed it. Without a log by name
// the runtime writes on to where nobody looks and nobody counts. The error is
// errEnded when the container does not run any more.
func (r *Rotator) find(ctx context.Context, id string, s *seen) (size int64, err error) {
	where, err := r.runtime.Log(ctx, id)
	if err == nil && where == "" {
		err = errEnded
	}
	if err != nil {
		return 0, err
	}
	s.log = where
	if size, err = sizeOf(where); err == nil {
		return size, nil
	}
	dir := filepath.Dir(where)
	made, err := makeDirs(dir)
	if err != nil {
		return 0, fmt.Errorf("log %s: %w", where, err)
	}
	if err := r.reopen(ctx, id); err != nil {
		for _, d := range made { // of a container that went meanwhile: nothing stays
			os.Remove(d)
		}
		return 0, err
	}
	r.log.Info("log is written to its place again", "file", where, "reason", "it was not there")
	return sizeOf(where)
}

// makeDirs makes a folder with its parent and returns what of them it made,
// innermost first. What is above has to be there.
func makeDirs(dir string) (made []string, err error) {
	for _, d := range []string{filepath.Dir(dir), dir} {
		err := os.Mkdir(d, 0o755)
		switch {
		case err == nil:
			made = append([]string{d}, made...)
		case !errors.Is(err, fs.ErrExist):
			return made, err
		}
	}
	return made, nil
}

// reopen is not broken off by the agent's end.
func (r *Rotator) reopen(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenIn)
	defer cancel()
	return r.runtime.Reopen(ctx, id)
}

// rotate makes a container's log begin anew, in the kubelet's order: first room
// is made, then the log is renamed and reopened. The newest former log stays as
// it is, for who still reads it. That former logs cannot be compressed, for
// instance because the disk is full, is said but keeps nothing from rotating.
func (r *Rotator) rotate(ctx context.Context, id, log string) error {
	former, err := tidy(log)
	if err != nil {
		return err
	}
	for len(former) > r.cfg.Load().MaxFiles-2 {
		if err := os.Remove(former[0].path(log)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("former log: %w", err)
		}
		former = former[1:]
	}
	var failed error
	for _, f := range former {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !f.zipped {
			failed = errors.Join(failed, compress(ctx, f.path(log)))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(failed, r.swap(ctx, id, log, former))
}

// swap renames the log and has it reopened, or gives it back its name. It never
// takes the place of another file: a runtime whose answer was lost may have
// reopened the log all the same.
func (r *Rotator) swap(ctx context.Context, id, log string, former []rotated) error {
	to := rotated{stamp: nextStamp(time.Now(), former)}.path(log)
	if err := rename(log, to); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	err := r.reopen(ctx, id)
	if err == nil {
		r.log.Debug("log rotated", "file", log)
		return nil
	}
	if back := rename(to, log); back != nil && !errors.Is(back, fs.ErrExist) && !errors.Is(back, fs.ErrNotExist) {
		err = errors.Join(err, back)
	}
	return fmt.Errorf("rotate log %s: %w", log, err)
}

// rename renames a file and never replaces another.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // a file system that cannot say so
		if _, there := os.Lstat(to); there == nil {
			err = unix.EEXIST
			break
		}
		return os.Rename(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
