package logs

import (
	"bufio"
	"io"

	"monopod/agent/podlog"
	"monopod/agent/print"
)

// printer prints lines of several containers.
type printer struct {
	out      *bufio.Writer
	prefixes []string
	lines    podlog.Printer

	mid    bool // the last line is incomplete
	from   int  // its container
	stream string
}

func newPrinter(out io.Writer, all []*container, o Options) *printer {
	p := &printer{out: bufio.NewWriterSize(out, 64<<10), prefixes: make([]string, len(all))}
	p.lines = podlog.Printer{W: p.out, Timestamps: o.Timestamps}
	if o.Prefix == nil || !*o.Prefix {
		return p
	}
	p.prefixes = print.Prefixes(names(all), o.Color)
	return p
}

// names returns pod/container for each, with the namespace if there are several.
func names(all []*container) []string {
	var names []string
	several := false
	for _, c := range all {
		several = several || c.pod.Namespace != all[0].pod.Namespace
	}
	for _, c := range all {
		name := print.ShortName(c.pod) + "/" + c.name
		if several {
			name = c.pod.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return names
}

// print prints a line of a container, or continues it. If a line of another container comes in
// between, the line is broken there.
func (p *printer) print(from int, l podlog.Line) error {
	goesOn := l.Continued && p.mid && p.from == from && p.stream == l.Stream
	if p.mid && !goesOn {
		p.out.WriteByte('\n')
	}
	l.Continued = goesOn
	if !goesOn {
		p.out.WriteString(p.prefixes[from])
	}
	p.mid, p.from, p.stream = l.Partial, from, l.Stream
	return p.lines.Print(l)
}

func (p *printer) flush() error { return p.out.Flush() }

// close ends the last line of several; one container's log is left as it is.
func (p *printer) close() error {
	if p.mid && len(p.prefixes) > 1 {
		p.out.WriteByte('\n')
	}
	return p.flush()
}
