package logrotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"monopod/agent/disk"
)

// find finds the log of a container that is not at its path: the path was another when the
// container was created, the log was renamed and not reopened, or it was removed. Without a log at
// its path the runtime writes to a file that is neither read nor counted. The error is errEnded if
// the container no longer runs.
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
	made, err := disk.MakeDirs(filepath.Dir(where), logDepth, 0o755)
	if err != nil {
		return 0, fmt.Errorf("log %s: %w", where, err)
	}
	if err := r.reopen(ctx, id); err != nil {
		for _, d := range made { // the container is gone: remove everything
			os.Remove(d)
		}
		return 0, err
	}
	r.log.Info("log is written to its place again", "file", where, "reason", "it was not there")
	return sizeOf(where)
}

// reopen is not interrupted by the agent's end.
func (r *Rotator) reopen(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenIn)
	defer cancel()
	return r.runtime.Reopen(ctx, id)
}

// rotate starts a new log for a container, in the kubelet's order: surplus logs are removed, then
// the log is renamed and reopened. The newest rotated log stays uncompressed for its readers. If
// rotated logs cannot be compressed, for instance because the disk is full, that is logged, and the
// log is rotated anyway.
func (r *Rotator) rotate(ctx context.Context, id, log string) error {
	d, err := folderOf(log)
	if err != nil {
		return fmt.Errorf("rotated logs: %w", err)
	}
	defer d.Close()
	name := filepath.Base(log)
	old, err := tidy(d, name)
	if err != nil {
		return err
	}
	for len(old) > r.cfg.Load().MaxFiles-2 {
		if err := remove(d, old[0].name(name)); err != nil {
			return fmt.Errorf("rotated log: %w", err)
		}
		old = old[1:]
	}
	var failed error
	for _, f := range old {
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
	return errors.Join(failed, r.swap(ctx, id, d, name, old))
}

// swap renames the log and makes the runtime reopen it. It restores the name only if the runtime
// refuses: conmon, which writes the logs of CRI-O, carries out a request of CRI-O even if it is
// late, and replaces any file of that name by the new log. Without an answer, find checks in the
// next round. swap never replaces another file: a runtime that refuses may have reopened the log
// anyway.
func (r *Rotator) swap(ctx context.Context, id string, d *disk.Dir, log string, old []rotated) error {
	to := rotated{stamp: nextStamp(time.Now(), old)}.name(log)
	if err := d.Rename(log, to); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	err := r.reopen(ctx, id)
	if err == nil {
		r.log.Debug("log rotated", "file", d.Path(log))
		return nil
	}
	if unanswered(err) {
		return fmt.Errorf("rotate log %s: it is %s until the runtime reopens it: %w", d.Path(log), to, err)
	}
	if back := d.Rename(to, log); back != nil && !errors.Is(back, fs.ErrExist) && !errors.Is(back, fs.ErrNotExist) {
		err = errors.Join(err, back)
	}
	return fmt.Errorf("rotate log %s: %w", d.Path(log), err)
}

// unanswered reports whether the result of a call for a log is not known.
func unanswered(err error) bool {
	return errors.Is(err, ErrUnanswered) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
