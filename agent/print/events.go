package print

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
)

// Events prints events as a table, as json or yaml as an EventList; if there are none, that
// sentence, which goes to notes unless w is a terminal.
func Events(w, notes io.Writer, all []v1.Event, none string, f Format) error {
	switch {
	case f.Output == "json" || f.Output == "yaml":
		if all == nil {
			all = []v1.Event{}
		}
		return As(w, f.Output, v1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: all})
	case len(all) == 0:
		return f.write(w, notes, &bytes.Buffer{}, []string{none})
	}
	t := newEventTable(all, f)
	for i := range all {
		t.addEvent(&all[i], f.Now)
	}
	var out bytes.Buffer
	t.Print(&out)
	_, err := w.Write(out.Bytes())
	return err
}

// eventTable lays events out; the namespace is shown if it tells something.
type eventTable struct {
	Table
	wide, namespaces, color bool
}

func newEventTable(all []v1.Event, f Format) *eventTable {
	t := &eventTable{Table: Table{columns: f.Columns}, wide: f.Output == "wide", color: f.Color}
	t.namespaces = f.namespaces(slices.ContainsFunc(all, func(e v1.Event) bool { return e.Namespace != metav1.NamespaceDefault }))
	head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "CONTAINER", "MESSAGE"}
	if t.namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if t.wide {
		head = slices.Insert(head, len(head)-1, "SOURCE", "FIRST SEEN", "COUNT")
	}
	t.Line(head...)
	return t
}

func (t *eventTable) addEvent(e *v1.Event, now time.Time) {
	row := plainCells([]string{LastSeen(e, now), e.Type, e.Reason, objectOf(e), ContainerOfEvent(e), EventText(e, now)})
	if t.wide {
		source := e.Source.Component
		if e.Source.Host != "" {
			source += ", " + e.Source.Host
		}
		first := Ago(e.FirstTimestamp.Time, now)
		row = slices.Insert(row, len(row)-1, plainCells([]string{source, first, fmt.Sprint(e.Count)})...)
		row[0].Text = Ago(e.LastTimestamp.Time, now)
	}
	if t.color && e.Type == v1.EventTypeWarning {
		row[1].Color = yellow
	}
	if t.namespaces {
		row = slices.Insert(row, 0, cell{Text: e.Namespace})
	}
	t.add(row...)
}

// EventText returns the message of an event, and when what failed is tried again, if that is in
// the future.
func EventText(e *v1.Event, now time.Time) string {
	next := events.NextOf(e)
	if !next.After(now) {
		return e.Message
	}
	return e.Message + nextTry(next, now)
}

// LastSeen returns "3m", or "3m (x5 over 10m)" for what happened more than once.
func LastSeen(e *v1.Event, now time.Time) string {
	last := Ago(e.LastTimestamp.Time, now)
	if e.Count < 2 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, Ago(e.FirstTimestamp.Time, now))
}

// objectOf returns "pod/web", with the pod's short name.
func objectOf(e *v1.Event) string {
	name := e.InvolvedObject.Name
	if e.InvolvedObject.Kind == "Pod" {
		name = short(name, e.Source.Host)
	}
	return strings.ToLower(e.InvolvedObject.Kind) + "/" + strings.TrimPrefix(name, "/")
}

// ContainerOfEvent returns the container that an event is about, "" if none.
func ContainerOfEvent(e *v1.Event) string {
	_, rest, _ := strings.Cut(e.InvolvedObject.FieldPath, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}
