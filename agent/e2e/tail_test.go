//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// tail follows a container's log by its name, as tail -F does: what it has open
// it reads to its end, also after it got another name, then it opens what has
// the name now. It checks that the lines are numbered from 0 on.
type tail struct {
	path  string
	open  *os.File
	files int // that it has seen
	first int // the number of the first line of what it has open

	raw   []byte // of an incomplete line of the file
	text  []byte // of an incomplete line of the container
	next  int    // the number that must come
	bytes int64
	err   error // the first thing that was wrong
}

// look reads what is there.
func (f *tail) look() {
	f.read()
	now, err := os.Stat(f.path)
	if err != nil || f.err != nil {
		return // between two logs
	}
	if f.open != nil {
		if !f.isOther(now) || now.Size() == 0 {
			return // the runtime may not be done with the one that is open
		}
		f.read()
		f.open.Close()
	}
	if f.open, err = os.Open(f.path); err == nil {
		f.files++
		f.first = f.next
		f.read()
	}
}

// moved reports whether another file than it has open has the name.
func (f *tail) moved() bool {
	now, err := os.Stat(f.path)
	return err == nil && f.open != nil && f.isOther(now)
}

// isOther reports whether that is not the file that it has open.
func (f *tail) isOther(now os.FileInfo) bool {
	was, err := f.open.Stat()
	return err == nil && !os.SameFile(was, now)
}

// read reads what it has open to its end.
func (f *tail) read() {
	b := make([]byte, 1<<20)
	for f.open != nil {
		n, err := f.open.Read(b)
		f.bytes += int64(n)
		f.take(b[:n])
		if err == io.EOF {
			return
		}
		if err != nil {
			f.fail("read: %v", err)
			return
		}
	}
}

func (f *tail) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// take takes more of a file.
func (f *tail) take(b []byte) {
	f.raw = append(f.raw, b...)
	for {
		line, rest, whole := bytes.Cut(f.raw, []byte("\n"))
		if !whole {
			return
		}
		f.line(line)
		f.raw = append(f.raw[:0], rest...)
	}
}

// line takes a line of the file: time, stream, F or P for a line or a part of
// it, text.
func (f *tail) line(line []byte) {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) != 4 {
		f.fail("after line %d comes %.60q", f.next-1, line)
		return
	}
	f.text = append(f.text, parts[3]...)
	if string(parts[2]) == "P" {
		return
	}
	n, err := strconv.Atoi(strings.TrimLeft(string(f.text[:len(f.text)-1]), "0") + string(f.text[len(f.text)-1:]))
	if err != nil || n != f.next || len(f.text) != lineLength {
		f.fail("after line %d comes %.60q of %d bytes, number %d", f.next-1, f.text, len(f.text), n)
	}
	f.next++
	f.text = f.text[:0]
}

// lineLength is the length of the numbered lines.
const lineLength = 1000

// follow looks until done, as often as that makes sense.
func (f *tail) follow(until time.Time, done func() bool) {
	for !done() && f.err == nil && time.Now().Before(until) {
		f.look()
		time.Sleep(5 * time.Millisecond)
	}
}
