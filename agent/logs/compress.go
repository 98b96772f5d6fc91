package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// compress replaces a former log by its compressed form, with the same mode and
// time. It does so quickly rather than well: logs shrink to a tenth or so either
// way, and the node has other work. Until all is on disk the log stays.
func compress(ctx context.Context, path string) (err error) {
	part := path + partEnd
	defer func() {
		if err != nil {
			os.Remove(part)
			err = fmt.Errorf("compress log: %w", err)
		}
	}()
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	copied, err := zip(ctx, in, part, info.Mode())
	if err != nil {
		return err
	}
	if info, err = in.Stat(); err != nil {
		return err
	}
	if info.Size() != copied {
		return fmt.Errorf("%s is still written to", path)
	}
	if err := os.Chtimes(part, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if err := os.Rename(part, path+zipEnd); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return os.Remove(path)
}

// zip writes what in holds to a new file and returns how much that was.
func zip(ctx context.Context, in io.Reader, path string, mode os.FileMode) (copied int64, err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode.Perm())
	if err != nil {
		return 0, err
	}
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

// syncDir makes what was done to a folder's names last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
