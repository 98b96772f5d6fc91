package archives

import (
	"context"
	"errors"
	"io"

	"monopod/cri"
)

// Load imports one archive now, and returns the full names of its images. stdin is read where path
// is "-"; what it has is known only when it was read.
func Load(ctx context.Context, c *cri.Client, path string, stdin io.Reader) ([]string, error) {
	importer, err := For(ctx, c)
	if err != nil {
		return nil, err
	}
	if path == "-" {
		return loadFrom(ctx, c, importer, stdin)
	}
	index, err := readFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return namesOf(index), importFile(ctx, c, importer, path, index)
}

// loadFrom imports what is read, while it is checked.
func loadFrom(ctx context.Context, c *cri.Client, importer Importer, stdin io.Reader) ([]string, error) {
	in, stop := untilEnd(ctx, stdin)
	defer stop()
	tar, err := Decompress(ctx, in)
	if err != nil {
		return nil, err
	}
	defer tar.Close()
	before, err := presentIn(ctx, c)
	if err != nil {
		return nil, err
	}
	checked, copied := io.Pipe()
	var index Index
	var wrong error
	over := make(chan struct{})
	go func() {
		defer close(over)
		index, wrong = ReadIndex(checked, arch)
		_, _ = io.Copy(io.Discard, checked)
	}()
	all := &toEnd{Reader: tar}
	err = importer.Import(ctx, Source{Tar: io.TeeReader(all, copied)})
	_ = copied.Close()
	<-over
	if wrong != nil && (err == nil || all.over) {
		err = wrong // in better words
	}
	if err == nil {
		err = shown(ctx, c, index)
	}
	if err != nil {
		err = errors.Join(err, before.restore(ctx, c, importer, index))
	}
	return namesOf(index), err
}

// untilEnd returns what is read from r until ctx ends or it is closed. A read of r that waits then is
// left behind: a file cannot be interrupted.
func untilEnd(ctx context.Context, r io.Reader) (in io.ReadCloser, stop func() bool) {
	pipe, out := io.Pipe()
	go func() {
		_, err := io.Copy(out, r)
		_ = out.CloseWithError(err)
	}()
	return pipe, context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
}

// toEnd remembers whether all was read.
type toEnd struct {
	io.Reader
	over bool
}

func (t *toEnd) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.over = t.over || err != nil
	return n, err
}

// Check returns what an archive has, or why it cannot be imported here.
func Check(ctx context.Context, path string) error {
	_, err := readFile(ctx, path)
	return err
}
