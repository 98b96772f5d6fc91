package managed

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// What the runtime's own log may take, twice: as it is written, and the one before it.
const (
	logMost  = 10 << 20 // bytes
	logEvery = 10 * time.Minute
)

// LogOf returns where the log of the runtime in a root dir is: a file, or the command that shows it.
func LogOf(root string) string {
	r := &Runtime{dir: filepath.Join(root, Folder)}
	i, _, _ := r.noted()
	if i.Unit != "" {
		return "journalctl --unit " + i.Unit
	}
	return r.file("log")
}

// keepLogSmall looks at the size of the log until ctx ends.
func (r *Runtime) keepLogSmall(ctx context.Context) {
	for sleep(ctx, logEvery); ctx.Err() == nil; sleep(ctx, logEvery) {
		err := rotateLog(r.file("log"), logMost)
		if err != nil {
			r.settings.Log.Warn("the managed runtime's log was emptied and not kept", "err", err)
		}
	}
}

// rotateLog copies a log of more than most bytes to path.1, and empties it. Its writer keeps the file
// open, and appends: it could not be told that a file was renamed. What is written between the copy and
// that is lost. If the disk takes no copy, the log is emptied nevertheless: it would fill the disk.
func rotateLog(path string, most int64) error {
	log, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil || info.Size() <= most {
		return err
	}
	return errors.Join(copyTo(path+".1", io.NewSectionReader(log, info.Size()-most, most)), log.Truncate(0))
}

// keepFormerLog keeps the log of a containerd that has ended as path.1: it says why.
func keepFormerLog(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() > 0 {
		return os.Rename(path, path+".1")
	}
	return nil // an empty one has nothing to say
}

// copyTo writes a file; nothing is left of one that is not complete.
func copyTo(path string, from io.Reader) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
