package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"monopod/agent/safefile"
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
	if size, err = sizeOf(where); err == nil || isOther(err) {
		return size, err
	}
	made, err := safefile.MakeDirs(filepath.Dir(where), logDepth, 0o755)
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
	d, err := folderOf(log)
	if err != nil {
		return fmt.Errorf("former logs: %w", err)
	}
	defer d.Close()
	name := filepath.Base(log)
	former, err := tidy(d, name)
	if err != nil {
		return err
	}
	for len(former) > r.cfg.Load().MaxFiles-2 {
		if err := remove(d, former[0].name(name)); err != nil {
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
			failed = errors.Join(failed, compress(ctx, d, f.name(name)))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(failed, r.swap(ctx, id, d, name, former))
}

// swap renames the log and has it reopened, or gives it back its name. It never
// takes the place of another file: a runtime whose answer was lost may have
// reopened the log all the same.
func (r *Rotator) swap(ctx context.Context, id string, d *safefile.Dir, log string, former []rotated) error {
	to := rotated{stamp: nextStamp(time.Now(), former)}.name(log)
	if err := d.Rename(log, to); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	err := r.reopen(ctx, id)
	if err == nil {
		r.log.Debug("log rotated", "file", d.Path(log))
		return nil
	}
	if back := d.Rename(to, log); back != nil && !errors.Is(back, fs.ErrExist) && !errors.Is(back, fs.ErrNotExist) {
		err = errors.Join(err, back)
	}
	return fmt.Errorf("rotate log %s: %w", d.Path(log), err)
}
