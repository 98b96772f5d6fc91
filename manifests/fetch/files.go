package fetch

import (
	"context"
	"io/fs"
	"os"
	"time"

	"monopod/manifests"
	"monopod/manifests/patient"
)

// patience is how long to wait for a file; its file system may never answer.
const patience = 2 * time.Second

// content is the result of reading a file or its metadata.
type content struct {
	info os.FileInfo
	data []byte // nil: it was not read
	err  error
}

// files are the files that a request needs.
type files struct {
	calls patient.Calls[content]
	stop  <-chan struct{} // closed when the request ends
}

func newFiles() files { return files{calls: patient.Calls[content]{Most: 8}} }

func (f *files) stat(path string) (os.FileInfo, error) {
	c := f.ask("stat", path, func() content {
		info, err := os.Stat(path)
		return content{info: info, err: err}
	})
	return c.info, c.err
}

func (f *files) read(path string) ([]byte, error) {
	c := f.ask("read", path, func() content {
		data, err := manifests.ReadFile(path)
		return content{data: data, err: err}
	})
	return c.data, c.err
}

func (f *files) ask(op, path string, do func() content) content {
	c, err := f.calls.Ask(op+" "+path, patience, f.stop, do)
	if err != nil {
		c.err = &fs.PathError{Op: op, Path: path, Err: err}
	}
	return c
}

// within ends the waits for files when ctx, the context of a request, ends.
func (f *files) within(ctx context.Context) { f.stop = ctx.Done() }
