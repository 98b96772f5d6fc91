package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/events"
)

// EventsOptions says which events Events prints and how.
type EventsOptions struct {
	Options
	Pod   string // as for FindPod; "": all events
	Watch bool   // go on with those that come
}

// Events prints the events of the node, or those about a pod, the latest last.
func Events(ctx context.Context, w io.Writer, o EventsOptions) error {
	if !slices.Contains([]string{"", "wide", "json", "yaml"}, o.Output) {
		return fmt.Errorf("output %q is not one of wide, json, yaml", o.Output)
	}
	o.Now = cmp.Or(o.Now, time.Now())
	k, err := o.open(ctx)
	if err != nil {
		return err
	}
	all, err := k.events(ctx, "")
	if err != nil {
		return err
	}
	pod := ""
	if o.Pod != "" {
		if pod, err = k.podOfEvents(o.Pod, all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(e v1.Event) bool { return podOf(&e) != pod })
	}
	if o.Watch {
		return watchEvents(ctx, w, o, k, pod, all)
	}
	return printEvents(w, o, all)
}

// podOfEvents returns which pod a person means, which may be gone already.
func (k *known) podOfEvents(name string, all []v1.Event) (string, error) {
	pods, there := slices.Clone(k.pods), map[string]bool{}
	for i := range pods {
		there[pods[i].Namespace+"/"+pods[i].Name] = true
	}
	for i := range all {
		if key := podOf(&all[i]); key != "" && !there[key] {
			there[key] = true
			pods = append(pods, *podStub(&all[i]))
		}
	}
	p, err := FindPod(pods, name, "")
	if err != nil {
		return "", err
	}
	return p.Namespace + "/" + p.Name, nil
}

// events returns the events of a pod, "namespace/name", or all for "", the latest last.
func (k *known) events(ctx context.Context, pod string) ([]v1.Event, error) {
	if !k.down() {
		var list v1.EventList
		err := getJSON(ctx, k.from.Socket, "/events?pod="+url.QueryEscape(pod), &list)
		return list.Items, err
	}
	all, err := events.Read(filepath.Join(k.from.Root, "status", "events.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(e v1.Event) bool { return pod != "" && podOf(&e) != pod }), err
}

// podOf returns which pod an event is about, "namespace/name", "" if none.
func podOf(e *v1.Event) string {
	if e.InvolvedObject.Kind != "Pod" {
		return ""
	}
	return e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
}

// podStub is as much of a pod as an event about it tells.
func podStub(e *v1.Event) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.Spec.NodeName = e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Source.Host
	return p
}

func printEvents(w io.Writer, o EventsOptions, all []v1.Event) error {
	switch {
	case o.Output == "json" || o.Output == "yaml":
		if all == nil {
			all = []v1.Event{}
		}
		return printAs(w, o.Output, v1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: all})
	case len(all) == 0:
		_, err := fmt.Fprintln(w, noEvents(o.Pod))
		return err
	}
	t := newEventTable(o, all)
	for i := range all {
		t.addEvent(&all[i], o.Now)
	}
	var out bytes.Buffer
	t.print(&out)
	_, err := w.Write(out.Bytes())
	return err
}

func noEvents(pod string) string {
	if pod == "" {
		return "No events."
	}
	return fmt.Sprintf("No events of pod %s.", pod)
}

// eventTable lays events out; the namespace shows where it tells something.
type eventTable struct {
	table
	wide, namespaces, color bool
}

func newEventTable(o EventsOptions, all []v1.Event) *eventTable {
	t := &eventTable{wide: o.Output == "wide", color: o.Color}
	t.namespaces = t.wide || slices.ContainsFunc(all, func(e v1.Event) bool { return e.Namespace != metav1.NamespaceDefault })
	head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if t.namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if t.wide {
		head = slices.Insert(head, len(head)-1, "CONTAINER", "SOURCE", "FIRST SEEN", "COUNT")
	}
	t.add(plainCells(head)...)
	return t
}

func (t *eventTable) addEvent(e *v1.Event, now time.Time) {
	row := plainCells([]string{lastSeen(e, now), e.Type, e.Reason, objectOf(e), e.Message})
	if t.wide {
		source := e.Source.Component
		if e.Source.Host != "" {
			source += ", " + e.Source.Host
		}
		first := duration.HumanDuration(now.Sub(e.FirstTimestamp.Time))
		row = slices.Insert(row, len(row)-1, plainCells([]string{containerOfEvent(e), source, first, fmt.Sprint(e.Count)})...)
		row[0].text = duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
	}
	if t.color && e.Type == v1.EventTypeWarning {
		row[1].color = yellow
	}
	if t.namespaces {
		row = slices.Insert(row, 0, cell{text: e.Namespace})
	}
	t.add(row...)
}

// lastSeen is "3m", or "3m (x5 over 10m)" of what happened more than once.
func lastSeen(e *v1.Event, now time.Time) string {
	last := duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
	if e.Count < 2 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, duration.HumanDuration(now.Sub(e.FirstTimestamp.Time)))
}

// objectOf is "pod/web", with the pod's short name.
func objectOf(e *v1.Event) string {
	name := e.InvolvedObject.Name
	if e.InvolvedObject.Kind == "Pod" {
		name = shortName(podStub(e))
	}
	return strings.ToLower(e.InvolvedObject.Kind) + "/" + strings.TrimPrefix(name, "/")
}

// containerOfEvent is the container that an event is about, "" if none.
func containerOfEvent(e *v1.Event) string {
	_, rest, _ := strings.Cut(e.InvolvedObject.FieldPath, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}
