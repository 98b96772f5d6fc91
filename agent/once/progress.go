package once

import (
	"fmt"
	"io"
	"time"

	"monopod/agent/print"
)

// standing is how long a text must hold before it is printed: what passes at once is not worth a
// line.
const standing = 300 * time.Millisecond

// progress prints, each once, what the run waits for and which containers ended badly. It belongs
// to one goroutine.
type progress struct {
	out   io.Writer
	names names

	texts map[text]*notice
}

// text identifies what is printed once: as time passes the same may have other words.
type text struct {
	about, lasts string
	ended        bool // it is how a container ended
}

// takesPlaceOf reports whether one text is newer about the same subject as the other.
func (t text) takesPlaceOf(other text) bool {
	return t.about == other.about && t.ended == other.ended && t.lasts != other.lasts
}

type notice struct {
	since   time.Time
	printed bool
}

// print prints a line. Errors may name what containers have made, and so are cleaned here.
func (p *progress) print(format string, args ...any) {
	for k := range args {
		if err, is := args[k].(error); is {
			args[k] = print.OneLine(err.Error())
		}
	}
	fmt.Fprintf(p.out, "monopod: "+format+"\n", args...)
}

// look records what the pods wait for now. It returns when to look again, the zero time if only a
// change requires that.
func (p *progress) look(all []view, now time.Time) (again time.Time) {
	if p.texts == nil {
		p.texts = map[text]*notice{}
	}
	current, order := map[text]string{}, []text{}
	add := func(t text, line string) {
		if current[t] == "" {
			current[t], order = line, append(order, t)
		}
	}
	for k := range all {
		for _, e := range ends(&all[k], p.names) {
			add(text{e.about, e.Lasts, true}, e.String())
		}
		for _, w := range waits(&all[k], p.names, now) {
			add(text{w.about, w.Lasts, false}, w.String())
		}
	}
	for t, is := range p.texts {
		if current[t] == "" && !is.printed {
			delete(p.texts, t)
		}
	}
	for _, t := range order {
		is := p.texts[t]
		if is == nil {
			is = &notice{since: now}
			p.texts[t] = is
		}
		due := is.since.Add(standing)
		switch {
		case is.printed:
		case !now.Before(due):
			is.printed = true
			p.print("%s", current[t])
			p.forget(t, current)
		case again.IsZero() || due.Before(again):
			again = due
		}
	}
	return again
}

// forget forgets texts that were printed and do not hold any more, as this text replaced them: if
// one holds again, it is printed again.
func (p *progress) forget(t text, current map[text]string) {
	for other := range p.texts {
		if t.takesPlaceOf(other) && current[other] == "" {
			delete(p.texts, other)
		}
	}
}
