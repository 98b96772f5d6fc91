package podlog

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"monopod/agent/disk"
)

// source is an open file of a log. It stays the same when the file gets another name, or is
// removed.
type source struct {
	segment        // its stamp is "" until it is known to be rotated
	after   string // while stamp is "": the newest stamp of the attempt that is older
	removed bool   // the file is gone: only files after that one, or none, are left
	file    *os.File
	zip     *gzip.Reader
	offset  int64 // of what was read of file
	limit   int64 // how much of file is read; openLimit: all, also what is added
}

const openLimit = int64(1)<<62 - 1

func openSource(d *disk.Dir, s segment) (*source, error) {
	f, err := d.Open(s.name())
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &source{segment: s, file: f, limit: openLimit}, nil
}

func (s *source) close() { s.file.Close() }

// read continues to read; io.EOF means that there is no more for now.
func (s *source) read(b []byte) (int, error) {
	if s.zipped {
		return s.unzip(b)
	}
	if int64(len(b)) > s.limit-s.offset {
		b = b[:s.limit-s.offset]
	}
	if len(b) == 0 {
		return 0, io.EOF
	}
	n, err := s.file.ReadAt(b, s.offset)
	s.offset += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

func (s *source) unzip(b []byte) (n int, err error) {
	if s.zip == nil {
		if s.zip, err = gzip.NewReader(s.file); err != nil {
			return 0, s.damaged(err)
		}
	}
	for n == 0 && err == nil {
		n, err = s.zip.Read(b)
	}
	if n > 0 || err == io.EOF {
		return n, s.unlessRead(n, err)
	}
	return 0, s.damaged(err)
}

func (s *source) unlessRead(n int, err error) error {
	if n > 0 {
		return nil // an error occurs again
	}
	return err
}

// damagedError: a compressed file cannot be read to its end.
type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

func (s *source) damaged(err error) error {
	return damagedError{fmt.Errorf("log %s is damaged: %w", s.file.Name(), err)}
}

// shrunk reports whether the file was truncated since it was read, as some tools do.
func (s *source) shrunk() bool {
	i, err := s.file.Stat()
	return err == nil && !s.zipped && i.Size() < s.offset
}

// is reports whether t is this file.
func (s *source) is(d *disk.Dir, t segment) bool {
	there, err := d.Stat(t.name())
	if err != nil {
		return false
	}
	mine, err := disk.StatOf(s.file)
	return err == nil && there.Same(mine)
}

// became reports whether t is this file, or its compressed form, which has the same time.
func (s *source) became(d *disk.Dir, t segment) bool {
	if !t.zipped || s.zipped {
		return s.is(d, t)
	}
	there, err := d.Stat(t.name())
	if err != nil {
		return false
	}
	mine, err := disk.StatOf(s.file)
	return err == nil && there.Changed().Equal(mine.Changed())
}
