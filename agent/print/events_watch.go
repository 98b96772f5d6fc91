package print

import (
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
)

// EventPrinter prints one event after the other.
type EventPrinter struct {
	w     io.Writer
	f     Format
	seen  map[string]int32 // the count of each event when it was printed last, by namespace/name
	table *eventTable
}

// NewEventPrinter returns an EventPrinter that has printed nothing.
func NewEventPrinter(w io.Writer, f Format) *EventPrinter {
	return &EventPrinter{w: w, f: f, seen: map[string]int32{}}
}

// Past prints the past events as one table, so that the columns fit; as json or yaml nothing, for
// a stream contains them again.
func (p *EventPrinter) Past(all []v1.Event) error {
	p.table = newEventTable(all, p.f)
	if p.f.Output == "json" || p.f.Output == "yaml" {
		return nil
	}
	for i := range all {
		p.seen[all[i].Namespace+"/"+all[i].Name] = all[i].Count
		p.table.addEvent(&all[i], p.f.Now)
	}
	return p.flush()
}

// Print prints an event unless it is printed already.
func (p *EventPrinter) Print(e *v1.Event, now time.Time) error {
	name := e.Namespace + "/" + e.Name
	if p.seen[name] >= e.Count {
		return nil
	}
	p.seen[name] = e.Count
	switch p.f.Output {
	case "json":
		data, err := JSON(e, "")
		if err == nil {
			_, err = p.w.Write(append(data, '\n'))
		}
		return err
	case "yaml":
		data, err := YAML(e)
		if err == nil {
			_, err = fmt.Fprintf(p.w, "---\n%s", data)
		}
		return err
	}
	if p.table == nil {
		p.table = newEventTable([]v1.Event{*e}, p.f)
	}
	p.table.addEvent(e, now)
	return p.flush()
}

// flush prints the lines of the table that are not printed yet.
func (p *EventPrinter) flush() error {
	var out bytes.Buffer
	p.table.Print(&out)
	p.table.rows = p.table.rows[:0]
	_, err := p.w.Write(out.Bytes())
	return err
}
