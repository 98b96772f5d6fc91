package once

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// standing is how long a text must hold before it is said: what passes at once
// is not worth a line.
const standing = 300 * time.Millisecond

// progress says, each once, what the run waits for and which containers ended
// badly. It belongs to one goroutine.
type progress struct {
	out   io.Writer
	names names

	texts map[string]*text // by what they are about
}

type text struct {
	words string
	since time.Time
	said  bool
}

func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "monopod: "+format+"\n", args...)
}

// look takes in what the pods wait for now. It returns when to look again, the
// zero time if only a change makes that worth while.
func (p *progress) look(all []view, now time.Time) (again time.Time) {
	if p.texts == nil {
		p.texts = map[string]*text{}
	}
	current := map[string]string{}
	for k := range all {
		maps.Copy(current, waits(&all[k], p.names))
		maps.Copy(current, ends(&all[k], p.names))
	}
	for about, t := range p.texts {
		if current[about] == "" && !t.said {
			delete(p.texts, about)
		}
	}
	for _, about := range slices.Sorted(maps.Keys(current)) {
		t := p.texts[about]
		if t == nil || t.words != current[about] {
			t = &text{words: current[about], since: now}
			p.texts[about] = t
		}
		due := t.since.Add(standing)
		switch {
		case t.said:
		case !now.Before(due):
			t.said = true
			p.say("%s: %s", strings.TrimSuffix(about, endMark), t.words)
		case again.IsZero() || due.Before(again):
			again = due
		}
	}
	return again
}
