package podlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
)

// lookBack is how many bytes before the last lines are searched for the beginnings of lines in
// parts, counted from the last such part.
const lookBack = 1 << 20

// tailTries is how often the last lines are searched again because a file was rotated meanwhile.
const tailTries = 10

// tail returns the file in which the last n lines start, at the offset to read from, and how many
// lines must be left out then. Without any file it returns nil.
func (r *reader) tail(ctx context.Context, n int64) (at *source, skip int64, err error) {
	for range tailTries {
		at, skip, err = r.tryTail(ctx, max(n, 0))
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return at, skip, err
}

// tryTail fails with fs.ErrNotExist when a file that it reaches does not exist any more.
func (r *reader) tryTail(ctx context.Context, n int64) (*source, int64, error) {
	all, err := r.list()
	if err != nil {
		return nil, 0, err
	}
	r.first, r.last = choose(all, r.o)
	all = slices.DeleteFunc(all, func(s segment) bool { return s.attempt < r.first || s.attempt > r.last })
	if len(all) == 0 {
		return nil, 0, nil
	}
	t := &tailer{n: n, stream: r.o.Stream}
	for k := len(all) - 1; k >= 0 && !t.done; k-- {
		s, err := openSource(r.at, all[k])
		if err != nil {
			t.close()
			return nil, 0, err
		}
		now, err := r.list()
		if k == len(all)-1 && (err != nil || !slices.Contains(now, all[k]) || !s.is(r.at, all[k]) || newestStamp(now, s.attempt) != newestStamp(all, s.attempt)) {
			s.close()
			return nil, 0, fs.ErrNotExist // it was rotated just now
		}
		s.after = newestStamp(all, s.attempt)
		if err := t.back(ctx, s); err != nil {
			t.close()
			return nil, 0, err
		}
	}
	if t.at != nil && t.at.attempt == all[len(all)-1].attempt && t.at.stamp == "" && !r.o.Follow {
		t.at.limit = t.newest
	}
	return t.at, t.skip, nil
}

// tailer reads files from the last to the first and counts lines.
type tailer struct {
	n      int64
	stream string

	at     *source // where to start
	skip   int64   // lines to leave out from there
	newest int64   // the size of the newest file
	done   bool

	ends    int64   // lines that ended in what was read
	attempt int     // the attempt being read
	seen    [2]bool // a part of the stream, in this attempt
	open    [2]bool // the beginning of a line that counts may be further back
	far     int64   // bytes since one of those was seen
}

func (t *tailer) close() {
	if t.at != nil {
		t.at.close()
	}
}

// back reads a file. It takes ownership of the file.
func (t *tailer) back(ctx context.Context, s *source) error {
	first := t.at == nil
	if first || s.attempt != t.attempt {
		t.attempt, t.seen, t.open = s.attempt, [2]bool{}, [2]bool{}
	}
	i, err := s.file.Stat()
	if err != nil {
		s.close()
		return err
	}
	size := i.Size()
	if first {
		t.newest = size
		if t.n == 0 && !s.zipped {
			t.begin(s, size)
			t.done = true
			return nil
		}
	}
	if s.zipped {
		return t.unzipped(ctx, s)
	}
	t.begin(s, size)
	err = eachBack(ctx, s.file, size, func(pos int64, b []byte) bool {
		t.take(s, pos, b)
		return !t.done
	})
	return err
}

// begin makes an offset of a file the start, unless that would be too far ahead: the file counts
// nothing yet.
func (t *tailer) begin(s *source, offset int64) {
	if t.at != nil && t.at != s {
		t.at.close()
	}
	t.at, s.offset, t.skip = s, offset, max(t.ends-t.n, 0)
}

// take takes the line of a file that starts at pos.
func (t *tailer) take(s *source, pos int64, b []byte) {
	h, ok := parseHead(b)
	if !ok {
		h.stream, h.full = Stdout, true
	}
	if t.stream != "" && h.stream != t.stream {
		t.far += int64(len(b))
		t.done = t.ends >= t.n && t.far > lookBack
		return
	}
	k := streamIndex(h.stream)
	ends := h.full || !t.seen[k]
	t.seen[k] = true
	switch {
	case ends && t.ends >= t.n:
		t.ends++
		t.open[k] = false
	case ends:
		t.ends++
		t.open[k] = true
		t.begin(s, pos)
		t.far = 0
	case t.open[k]:
		t.begin(s, pos)
		t.far = 0
	}
	t.far += int64(len(b))
	t.done = t.ends >= t.n && (t.far > lookBack || !t.open[0] && !t.open[1])
}

// unzipped reads a compressed file, which can be read only forwards: it counts as a whole.
func (t *tailer) unzipped(ctx context.Context, s *source) error {
	count := &reader{src: s, join: joiner{stream: t.stream, emit: func(l Line) error {
		if !l.Partial {
			t.ends++
		}
		return nil
	}}}
	err := count.pump(ctx)
	if err == nil {
		err = count.leave(true) // a line that was cut off is one, too
	}
	if err == nil {
		_, err = s.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		s.close()
		return err
	}
	for k, p := range count.join.open {
		if p.open && !t.seen[k] { // the attempt ended within it
			t.ends++
		}
	}
	s.zip, s.offset = nil, 0
	t.begin(s, 0)
	t.done = t.ends > t.n
	return nil
}

// eachBack calls do for each line of a file, from the last to the first, with
// its place and at least its first headMax bytes, until it returns false.
func eachBack(ctx context.Context, f io.ReaderAt, size int64, do func(pos int64, b []byte) bool) error {
	buf := make([]byte, blockSize+headMax)
	end := size
	var later []byte // the beginning of what follows the block, at most headMax bytes
	for end > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		from := max(end-blockSize, 0)
		n, err := f.ReadAt(buf[:end-from], from)
		if err != nil && err != io.EOF {
			return err
		}
		block := buf[:n+copy(buf[n:], later)]
		stop := n
		if end == size && n > 0 && block[n-1] == '\n' {
			stop = n - 1 // it ends the last line
		}
		for {
			k := bytes.LastIndexByte(block[:stop], '\n')
			if k < 0 {
				break
			}
			if !do(from+int64(k)+1, lineAt(block, k+1)) {
				return nil
			}
			stop = k
		}
		later = append(later[:0:0], block[:min(len(block), headMax)]...)
		if from == 0 {
			do(0, lineAt(block, 0))
		}
		end = from
	}
	return nil
}

// lineAt returns the line of a block that starts at k, or its part in the block.
func lineAt(block []byte, k int) []byte {
	b := block[k:]
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		return b[:n]
	}
	return b
}
