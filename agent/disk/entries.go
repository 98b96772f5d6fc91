package disk

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// entry is one name in a folder, as the kernel lists it.
type entry struct {
	name string
	kind uint8 // such as unix.DT_DIR; some file systems report only DT_UNKNOWN
	next int64 // the position of the entry behind it in the folder
}

// mayBeDir reports whether the entry is a folder, or only opening it can show whether it is.
func (e entry) mayBeDir() bool { return e.kind == unix.DT_DIR || e.kind == unix.DT_UNKNOWN }

// blocks has the buffers of listings that are over.
var blocks = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// listing lists the entries of an open folder, with few in memory at a time.
type listing struct {
	block       *[8 << 10]byte // the last result of getdents64; nil: not read yet
	rest        []byte         // the unread rest of it
	now, behind int64          // positions of the last returned entry, and of the one behind it
	again       bool           // return the last entry once more
	last        entry
	came        int // entries returned since the beginning
}

// next returns the next entry; false: there is none.
func (l *listing) next(fd int) (e entry, ok bool, err error) {
	if l.again {
		l.again = false
		return l.last, true, nil
	}
	for {
		for len(l.rest) == 0 {
			if ok, err := l.read(fd); err != nil || !ok {
				return e, false, err
			}
		}
		e = l.cut()
		l.now, l.behind = l.behind, e.next
		if e.name != "." && e.name != ".." {
			l.last = e
			l.came++
			return e, true, nil
		}
	}
}

// read reads the next part of the folder; false: there is no more.
func (l *listing) read(fd int) (bool, error) {
	if l.block == nil {
		l.block = blocks.Get().(*[8 << 10]byte)
	}
	for {
		n, err := unix.Getdents(fd, l.block[:])
		if err == unix.EINTR {
			continue
		}
		l.rest = l.block[:max(n, 0)]
		return n > 0, err
	}
}

// end gives the buffer to the next listing.
func (l *listing) end() {
	if l.block != nil {
		blocks.Put(l.block)
	}
	l.block, l.rest = nil, nil
}

// cut returns the first unread entry: a linux_dirent64.
func (l *listing) cut() entry {
	const next, size, kind, name = 8, 16, 18, 19
	b := l.rest
	b, l.rest = b[:binary.NativeEndian.Uint16(b[size:])], b[binary.NativeEndian.Uint16(b[size:]):]
	text, _, _ := bytes.Cut(b[name:], []byte{0})
	return entry{string(text), b[kind], int64(binary.NativeEndian.Uint64(b[next:]))}
}

// seek continues the listing at the position of an entry.
func (l *listing) seek(fd int, at int64) error {
	l.rest, l.again, l.now, l.behind = nil, false, at, at
	_, err := unix.Seek(fd, at, io.SeekStart)
	return err
}

// rewind restarts the listing.
func (l *listing) rewind(fd int) error {
	l.came = 0
	return l.seek(fd, 0)
}
