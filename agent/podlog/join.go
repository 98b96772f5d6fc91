package podlog

import "time"

// joiner makes lines of entries: it joins parts, and leaves out filtered ones.
type joiner struct {
	emit   func(Line) error
	since  time.Time
	stream string // "": both
	skip   int64  // lines to leave out at first

	attempt int
	open    [2]part // by stream
	raw     entry   // the entry that is being taken in pieces
	last    time.Time
}

// part is a line whose first part was read.
type part struct {
	open bool
	sent bool // a piece of it was emitted
	time time.Time
	text []byte
}

func streamIndex(stream string) int {
	if stream == Stderr {
		return 1
	}
	return 0
}

func streamOf(k int) string { return [...]string{Stdout, Stderr}[k] }

// take takes a line of a file, or a piece of one that is too long: begins and ends are whether it
// is the first and the last piece.
func (j *joiner) take(b []byte, begins, ends bool) error {
	if begins {
		j.raw = parse(b)
		b = j.raw.text
		j.raw.text = nil
		if j.raw.time.IsZero() {
			j.raw.time = j.last // it has none
		}
		j.last = j.raw.time
	}
	if j.stream != "" && j.raw.stream != j.stream {
		return nil
	}
	p := &j.open[streamIndex(j.raw.stream)]
	if !p.open {
		p.open, p.time = true, j.raw.time
	}
	for len(p.text)+len(b) > LineMax {
		n := LineMax - len(p.text)
		p.text = append(p.text, b[:n]...)
		b = b[n:]
		if err := j.send(j.raw.stream, p, true); err != nil {
			return err
		}
	}
	if ends && j.raw.full && len(p.text) == 0 { // the usual case: nothing to join
		kept := p.text
		p.text = b
		err := j.send(j.raw.stream, p, false)
		p.text = kept
		return err
	}
	p.text = append(p.text, b...)
	if ends && j.raw.full {
		return j.send(j.raw.stream, p, false)
	}
	return nil
}

// send emits the available text of a line.
func (j *joiner) send(stream string, p *part, partial bool) error {
	l := Line{Time: p.time, Stream: stream, Attempt: j.attempt, Text: p.text, Partial: partial, Continued: p.sent}
	p.sent, p.open, p.text = partial, partial, p.text[:0]
	if j.skip > 0 {
		if !partial {
			j.skip--
		}
		return nil
	}
	if l.Time.Before(j.since) {
		return nil
	}
	return j.emit(l)
}

// flush emits the available text of incomplete lines.
func (j *joiner) flush() error {
	for k := range j.open {
		if p := &j.open[k]; len(p.text) > 0 {
			if err := j.send(streamOf(k), p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// end flushes, and starts over: another attempt follows.
func (j *joiner) end() error {
	err := j.flush()
	for k := range j.open {
		if p := &j.open[k]; p.open {
			*p = part{text: p.text[:0]}
			j.skip = max(j.skip-1, 0)
		}
	}
	return err
}
