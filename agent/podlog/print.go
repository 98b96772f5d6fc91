package podlog

import (
	"errors"
	"io"
)

// timeForm is how the kubelet prints the time of a line.
const timeForm = "2006-01-02T15:04:05.000000000Z07:00"

// ErrLimit ends printing: the allowed number of bytes was printed.
var ErrLimit = errors.New("limit reached")

// Printer prints lines as the kubelet's endpoint does.
type Printer struct {
	W          io.Writer
	Timestamps bool  // before each line
	Limit      int64 // of bytes, within a line if necessary; 0: none

	printed int64
	buf     []byte
}

// Print prints a line. Its text is written as it is.
func (p *Printer) Print(l Line) error {
	p.buf = p.buf[:0]
	if p.Timestamps && !l.Continued {
		p.buf = append(l.Time.AppendFormat(p.buf, timeForm), ' ')
	}
	p.buf = append(p.buf, l.Text...)
	if !l.Partial {
		p.buf = append(p.buf, '\n')
	}
	b, full := p.buf, false
	if p.Limit > 0 && int64(len(b)) >= p.Limit-p.printed {
		b, full = b[:p.Limit-p.printed], true
	}
	n, err := p.W.Write(b)
	p.printed += int64(n)
	if err == nil && full {
		err = ErrLimit
	}
	return err
}
