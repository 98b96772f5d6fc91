package podlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"monopod/agent/disk"
)

const (
	// blockSize is how much of a file is read at a time.
	blockSize = 64 << 10
	// lateFor: a runtime that reopens a log may still write lines to the previous file when the
	// new one exists.
	lateFor = 200 * time.Millisecond
	// pollEvery guards against lost notifications, as often as the kubelet.
	pollEvery = time.Second
	// retriesMax bounds how often a file that was just listed is looked for.
	retriesMax = 100
)

// errDone: nothing is left to read.
var errDone = errors.New("done")

// reader reads one container's log. One goroutine owns it.
type reader struct {
	dir   string
	o     Options
	join  joiner
	watch *watch // with Follow

	first, last int       // attempts; set by begin
	at          *disk.Dir // the folder, as listed last; nil: it was not
	src         *source   // nil before the beginning
	buf         []byte    // read and not taken: the beginning of a line
	mid         bool      // its beginning was taken already
	leaveAt     time.Time // when the open file may be left; zero: not requested
	retries     int
	ended       bool // nothing more will be written
	damage      error
}

func (r *reader) close() {
	if r.src != nil {
		r.src.close()
	}
	if r.at != nil {
		r.at.Close()
	}
}

// list lists the folder, which may be another one than before.
func (r *reader) list() ([]segment, error) {
	d, err := open(r.dir)
	if err != nil {
		return nil, err
	}
	if r.at != nil {
		r.at.Close()
	}
	r.at = d
	return list(d)
}

// run reads until nothing more can come. errDone is its regular end.
func (r *reader) run(ctx context.Context) error {
	look := true // whether files may have changed their names
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := r.pump(ctx); err != nil {
			return err
		}
		if look || r.ended {
			moved, err := r.advance(ctx)
			if err != nil {
				return err
			}
			if moved {
				continue
			}
		}
		if !r.o.Follow || r.ended {
			return r.finish()
		}
		var err error
		if look, err = r.wait(ctx); err != nil {
			return err
		}
	}
}

// finish emits the rest, when nothing more can come.
func (r *reader) finish() error {
	if r.src == nil && !r.o.Follow {
		return errNone
	}
	if err := r.leave(r.src == nil || r.src.stamp != "" || r.ended); err != nil {
		return err
	}
	if err := r.join.end(); err != nil {
		return err
	}
	if err := r.idle(); err != nil {
		return err
	}
	return errDone
}

func (r *reader) idle() error {
	if r.o.Idle == nil {
		return nil
	}
	return r.o.Idle()
}

// pump reads the available content of the open file.
func (r *reader) pump(ctx context.Context) error {
	for r.src != nil {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if cap(r.buf)-len(r.buf) == 0 {
			r.buf = slices.Grow(r.buf, max(blockSize-len(r.buf), 0))
		}
		n, err := r.src.read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if taken := r.takeLines(); taken != nil {
			return taken
		}
		var damaged damagedError
		switch {
		case errors.As(err, &damaged):
			if r.damage == nil {
				r.damage = err
			}
			return nil
		case err == io.EOF:
			if r.src.shrunk() {
				r.src.offset, r.buf, r.mid = 0, r.buf[:0], false
				continue
			}
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// takeLines takes the complete lines, and the beginning of one that fills the buffer.
func (r *reader) takeLines() error {
	rest := r.buf
	for {
		k := bytes.IndexByte(rest, '\n')
		if k < 0 {
			break
		}
		if err := r.join.take(rest[:k], !r.mid, true); err != nil {
			return err
		}
		rest, r.mid = rest[k+1:], false
	}
	if len(rest) == cap(r.buf) {
		if err := r.join.take(rest, !r.mid, false); err != nil {
			return err
		}
		rest, r.mid = nil, true
	}
	r.buf = r.buf[:copy(r.buf, rest)]
	return nil
}

// leave takes the rest of the file: whole means that a line at its end that has no newline will
// not get one.
func (r *reader) leave(whole bool) error {
	rest, mid := r.buf, r.mid
	r.buf, r.mid = r.buf[:0], false
	if len(rest) == 0 && !mid {
		return nil
	}
	return r.join.take(rest, !mid, whole)
}

// advance moves to the next file if the open one is read to its end and will not grow. What was in
// it before that check is taken.
func (r *reader) advance(ctx context.Context) (moved bool, err error) {
	if r.src != nil && r.src.offset >= r.src.limit {
		return false, nil
	}
	all, err := r.list()
	if errors.Is(err, fs.ErrNotExist) && (r.o.Follow || r.src != nil) {
		return false, nil // not yet, or not any more
	}
	if err != nil {
		return false, err
	}
	if r.src == nil {
		return r.begin(ctx, all)
	}
	next, newest, ok := r.successor(all)
	if !ok {
		r.leaveAt = time.Time{}
		return false, nil
	}
	if next.attempt == r.src.attempt && newest && r.o.Follow && !r.ended {
		if r.leaveAt.IsZero() {
			r.leaveAt = time.Now().Add(lateFor)
		}
		if time.Now().Before(r.leaveAt) {
			return false, nil
		}
	}
	if err := r.pump(ctx); err != nil { // up to its very end
		return false, err
	}
	return r.move(next)
}

// begin opens the first file, if one exists by now.
func (r *reader) begin(ctx context.Context, all []segment) (opened bool, err error) {
	r.first, r.last = choose(all, r.o)
	if r.o.Tail != nil {
		var at *source
		if at, r.join.skip, err = r.tail(ctx, *r.o.Tail); at == nil {
			return false, err
		}
		r.enter(at)
		return true, nil
	}
	next, _, ok := r.successor(all)
	if !ok {
		return false, nil
	}
	return r.move(next)
}

// move moves to a file, unless it became another one meanwhile.
func (r *reader) move(next segment) (moved bool, err error) {
	s, err := openSource(r.at, next)
	if r.retries++; err != nil && (!errors.Is(err, fs.ErrNotExist) || r.retries > retriesMax) {
		return false, err
	}
	if err != nil {
		return true, nil // look again
	}
	all, err := r.list()
	now, _, ok := r.successor(all)
	if err != nil || !ok || now != next || !s.is(r.at, next) {
		s.close()
		return true, nil // look again
	}
	r.retries = 0
	if r.src != nil {
		if err := r.leave(true); err != nil {
			return false, err
		}
		if r.src.attempt != next.attempt {
			if err := r.join.end(); err != nil {
				return false, err
			}
		}
		r.src.close()
		r.src = nil
	}
	s.after = newestStamp(all, next.attempt)
	r.enter(s)
	return true, nil
}

// enter makes a file the one that is read.
func (r *reader) enter(s *source) {
	r.src, r.join.attempt, r.leaveAt = s, s.attempt, time.Time{}
	if r.o.Follow || s.stamp != "" || s.attempt != r.last || s.limit != openLimit {
		return
	}
	if i, err := s.file.Stat(); err == nil { // later content is not waited for
		s.limit = i.Size()
	}
}

// newestStamp returns the newest stamp of an attempt's files; "": none was rotated.
func newestStamp(all []segment, attempt int) (stamp string) {
	for _, s := range all {
		if s.attempt == attempt && s.stamp != "" {
			stamp = s.stamp
		}
	}
	return stamp
}
