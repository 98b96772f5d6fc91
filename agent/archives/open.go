package archives

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// The first bytes of compressed files.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

var errNoZstd = errors.New("it is compressed with zstd, and there is no program zstd in PATH: install it, or compress the archive with gzip")

// Open returns the tar of an archive, decompressed; that of one that is not compressed is its file.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	magic := make([]byte, len(zstdMagic))
	n, err := f.ReadAt(magic, 0)
	if err != nil && err != io.EOF {
		_ = f.Close()
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic[:n], gzipMagic), bytes.HasPrefix(magic[:n], zstdMagic):
		return Decompress(ctx, f)
	}
	return f, nil
}

// Decompress returns the tar of an archive that is read from r, which Close closes.
func Decompress(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReader(r)
	magic, _ := b.Peek(len(zstdMagic))
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, errors.Join(inWords(err), r.Close())
		}
		return &both{z, []io.Closer{z, r}}, nil
	case bytes.HasPrefix(magic, zstdMagic):
		return unzstd(ctx, b, r)
	}
	return &both{b, []io.Closer{r}}, nil
}

// inWords returns what an error of a compressed file means: that it is cut off or damaged. Others it
// returns as they are.
func inWords(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errCut
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return errDamage
	}
	return err
}

// both is a reader, and what is to be closed with it.
type both struct {
	io.Reader
	closers []io.Closer
}

func (b *both) Close() (err error) {
	for _, c := range b.closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// unzstd decompresses with the program zstd. Its output ends with an error if the program fails.
func unzstd(ctx context.Context, in io.Reader, file io.Closer) (io.ReadCloser, error) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		return nil, errors.Join(errNoZstd, file.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program, "--decompress", "--stdout", "--quiet")
	var words bytes.Buffer
	pipe, out := io.Pipe()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &words
	err = cmd.Start()
	if err != nil {
		cancel()
		return nil, errors.Join(err, file.Close())
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("zstd: %s: copy it again", strings.TrimSpace(words.String()))
		}
		_ = out.CloseWithError(err)
	}()
	return &child{pipe, cancel, over, file}, nil
}

// child is the output of a program.
type child struct {
	*io.PipeReader
	cancel context.CancelFunc
	over   chan struct{}
	file   io.Closer
}

// Close ends the program and waits for it.
func (c *child) Close() error {
	c.cancel()
	err := errors.Join(c.PipeReader.Close(), c.file.Close())
	<-c.over
	return err
}

// openRegular opens a file, or what a link leads to. It does not wait for the writer of a pipe.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", path)
	}
	return os.Open(path)
}
