package logrotate

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"monopod/agent/disk"
)

// compress replaces a rotated log by its compressed form, with the same mode and time. It prefers
// speed to size: logs shrink to about a tenth either way, and the node has other work. The log
// stays until everything is on disk.
func compress(ctx context.Context, d *disk.Dir, name string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("compress log: %w", err)
		}
	}()
	in, err := d.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	part := name + partEnd
	out, err := d.Create(part, 0o600)
	if err != nil {
		return err
	}
	if err := replace(ctx, d, in, out, name); err != nil {
		return errors.Join(err, remove(d, part))
	}
	if err := d.Sync(); err != nil {
		return err
	}
	return d.Remove(name)
}

// replace writes the compressed form of in to out, and renames out to name.
func replace(ctx context.Context, d *disk.Dir, in, out *os.File, name string) error {
	info, err := in.Stat()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	copied, err := zip(ctx, in, out, info.Mode())
	if err != nil {
		return err
	}
	if info, err = in.Stat(); err != nil {
		return err
	}
	if info.Size() != copied {
		return fmt.Errorf("%s is still written to", in.Name())
	}
	if err := d.SetTime(name+partEnd, info.ModTime()); err != nil {
		return err
	}
	return d.Replace(name+partEnd, name+zipEnd)
}

// zip writes the content of in to a new file, which it closes, and returns the length of the
// content.
func zip(ctx context.Context, in io.Reader, out *os.File, mode os.FileMode) (copied int64, err error) {
	defer func() { err = errors.Join(err, out.Close()) }()
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	if copied, err = io.Copy(z, reader{ctx, in}); err != nil {
		return copied, err
	}
	return copied, errors.Join(z.Close(), out.Chmod(mode.Perm()), out.Sync())
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	in  io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(b)
}
