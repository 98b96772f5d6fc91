package writelog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// Disk is an image that a machine has as its disk over a socket. It serves one
// connection at a time, and each request once the one before is done.
type Disk struct {
	image   *os.File
	size    int64
	listen  net.Listener
	serving sync.WaitGroup

	mu   sync.Mutex // of all below, and held while a request is carried out
	conn net.Conn
	log  *os.File // nil: none is made
	next int64    // where the log ends
	done []entry
	err  error // of all connections; that the machine went away is none
}

// Serve serves an image, which it changes, at a socket until Close.
func Serve(socket, image string) (*Disk, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d := &Disk{image: f, size: info.Size()}
	if d.listen, err = net.Listen("unix", socket); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.serving.Go(d.accept)
	return d, nil
}

// Close ends the connection, and returns what went wrong. A log stays open.
func (d *Disk) Close() error {
	err := d.listen.Close()
	d.mu.Lock()
	if d.conn != nil {
		d.conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
	return errors.Join(d.err, err, d.image.Close())
}

// Record begins a log, whose data a file gets. begin runs before, while no request is
// carried out: the image is what it is then.
func (d *Disk) Record(file string, begin func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := begin(); err != nil {
		return err
	}
	var err error
	d.log, err = os.Create(file)
	return err
}

// Len returns how many entries the log has now.
func (d *Disk) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.done)
}

// Log returns the log up to now. It reads from the file that Record made.
func (d *Disk) Log() *Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Log{data: d.log, entries: d.done[:len(d.done):len(d.done)]}
}

func (d *Disk) accept() {
	for {
		conn, err := d.listen.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.conn = conn
		d.mu.Unlock()
		err = d.serve(conn)
		conn.Close()
		away := (*net.OpError)(nil)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &away) {
			d.mu.Lock()
			d.err = errors.Join(d.err, err)
			d.mu.Unlock()
		}
	}
}

// What a request does.
const (
	doRead = iota
	doWrite
	doDisconnect
	doFlush
	doTrim
	_
	doWriteZeroes
)

const (
	requestMagic = 0x25609513
	replyMagic   = 0x67446698
	flagFUA      = 1
	failedIO     = 5  // EIO
	invalid      = 22 // EINVAL
	maxRequest   = 32 << 20
)

// request is one of the machine's, as it is on the wire.
type request struct {
	Magic  uint32
	Flags  uint16
	Do     uint16
	Cookie uint64
	Offset uint64
	Length uint32
}

// serve carries out requests until the machine disconnects.
func (d *Disk) serve(conn net.Conn) error {
	r, w := bufio.NewReaderSize(conn, 1<<16), bufio.NewWriterSize(conn, 1<<16)
	if err := d.greet(r, w); err != nil {
		return err
	}
	for {
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		var q request
		if err := binary.Read(r, binary.BigEndian, &q); err != nil {
			return err
		}
		if q.Magic != requestMagic || (q.Do == doRead || q.Do == doWrite) && q.Length > maxRequest {
			return fmt.Errorf("a request is none: %+v", q)
		}
		if q.Do == doDisconnect {
			return io.EOF
		}
		var b []byte
		if q.Do == doWrite {
			b = make([]byte, q.Length)
			if _, err := io.ReadFull(r, b); err != nil {
				return err
			}
		}
		b, code := d.do(q, b)
		if err := binary.Write(w, binary.BigEndian, struct {
			Magic, Code uint32
			Cookie      uint64
		}{replyMagic, code, q.Cookie}); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
}

// do carries out a request with its data, and returns the data and code of the answer.
func (d *Disk) do(q request, b []byte) (answer []byte, code uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := entry{offset: int64(q.Offset), length: int64(q.Length), fua: q.Flags&flagFUA != 0, at: d.next}
	if q.Offset > uint64(d.size) || e.length > d.size-e.offset {
		return nil, invalid
	}
	var err error
	switch q.Do {
	case doRead:
		answer = make([]byte, q.Length)
		_, err = d.image.ReadAt(answer, e.offset)
	case doWrite:
		if _, err = d.image.WriteAt(b, e.offset); err == nil {
			err = d.note(e, b)
		}
	case doWriteZeroes:
		e.kind = zeroes
		if err = (&Log{}).write(d.image, e, func(int64) bool { return true }); err == nil {
			err = d.note(e, nil)
		}
	case doFlush:
		err = d.note(entry{kind: flush}, nil)
	case doTrim: // what it held may stay
	default:
		return nil, invalid
	}
	if err != nil {
		d.err = errors.Join(d.err, err)
		return nil, failedIO
	}
	return answer, 0
}

// note adds an entry with its data to the log.
func (d *Disk) note(e entry, b []byte) error {
	if d.log == nil {
		return nil
	}
	if _, err := d.log.WriteAt(b, e.at); err != nil {
		return err
	}
	d.next += int64(len(b))
	d.done = append(d.done, e)
	return nil
}
