package once

import (
	"bufio"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
	"monopod/agent/print"
)

// Limits of each container's output in the reports.
const (
	tailLines = 50
	tailWidth = 1000    // bytes of a line
	wholeMost = 1 << 20 // bytes of all lines; of more, the last
)

// printer prints the lines of all containers, each behind the name of its container. Any goroutine
// may print. A closed output is no error: the run continues.
type printer struct {
	mu   sync.Mutex
	out  *bufio.Writer // drops all after an error
	open *stream       // the stream whose line is not complete yet; nil: none
}

// stream is the output of one container.
type stream struct {
	*printer
	prefix string
	mid    bool     // its last line is not complete yet; guarded by mu, as is what follows
	of     string   // stdout or stderr, which that line is from
	tail   []string // the last lines
	whole  []byte   // all lines, or the end of them
	cut    int64    // bytes that were left out before whole
}

func newPrinter(out io.Writer) *printer { return &printer{out: bufio.NewWriter(out)} }

// streams returns one for each container, in the order of the manifests.
func (p *printer) streams(pods []*v1.Pod, n names, colour bool) map[*v1.Pod]map[string]*stream {
	var names []string
	for _, pod := range pods {
		for _, c := range containers(pod) {
			names = append(names, n.pod(pod)+"/"+c.Name)
		}
	}
	prefixes := print.Prefixes(names, colour)
	out := map[*v1.Pod]map[string]*stream{}
	for _, pod := range pods {
		out[pod] = map[string]*stream{}
		for _, c := range containers(pod) {
			out[pod][c.Name] = &stream{printer: p, prefix: prefixes[0]}
			prefixes = prefixes[1:]
		}
	}
	return out
}

// line prints a line, or a piece of one. What the container writes to its other stream in between
// breaks the line there.
func (s *stream) line(l podlog.Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	goesOn := l.Continued && s.mid && s.of == l.Stream
	s.keep(l, goesOn)
	s.keepWhole(l, goesOn)
	s.mid, s.of = l.Partial, l.Stream
	if !goesOn || s.open != s {
		s.finish()
		s.out.WriteString(s.prefix)
	}
	s.out.Write(l.Text)
	s.open = s
	if !l.Partial {
		s.open = nil
		s.out.WriteByte('\n')
	}
	return nil
}

// keep adds the line to the tail; goesOn: it continues the last one.
func (s *stream) keep(l podlog.Line, goesOn bool) {
	text := string(l.Text[:min(len(l.Text), tailWidth)])
	if n := len(s.tail); goesOn && n > 0 {
		s.tail[n-1] += text[:min(len(text), max(tailWidth-len(s.tail[n-1]), 0))]
		return
	}
	if len(s.tail) == tailLines {
		copy(s.tail, s.tail[1:])
		s.tail = s.tail[:tailLines-1]
	}
	s.tail = append(s.tail, text)
}

// keepWhole adds the line to the whole output. At twice the limit the first half is dropped, so
// that a byte is moved at most once.
func (s *stream) keepWhole(l podlog.Line, goesOn bool) {
	if s.mid && !goesOn {
		s.whole = append(s.whole, '\n')
	}
	s.whole = append(s.whole, l.Text...)
	if !l.Partial {
		s.whole = append(s.whole, '\n')
	}
	if over := len(s.whole) - wholeMost; over > wholeMost {
		s.whole = append(s.whole[:0], s.whole[over:]...)
		s.cut += int64(over)
	}
}

// output returns the whole output, or of more than wholeMost the end and a line that reports that.
// The end may begin within a line: one line may be longer than that.
func (s *stream) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := max(len(s.whole)-wholeMost, 0)
	text := string(s.whole[over:])
	if cut := s.cut + int64(over); cut > 0 {
		return fmt.Sprintf("[the first %d bytes are left out]\n", cut) + text
	}
	return text
}

// last returns the last lines.
func (s *stream) last() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.tail...)
}

// finish ends a line that is open: p.mu is held.
func (p *printer) finish() {
	if p.open != nil {
		p.out.WriteByte('\n')
		p.open = nil
	}
}

// flush writes what was printed.
func (p *printer) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Flush()
	return nil
}

// close ends an open line and flushes.
func (p *printer) close() error {
	p.mu.Lock()
	p.finish()
	p.mu.Unlock()
	return p.flush()
}
