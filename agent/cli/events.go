package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
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
	all, err := k.Events(ctx, "")
	if err != nil {
		return err
	}
	pod := ""
	if o.Pod != "" {
		if pod, err = k.PodOfEvents(o.Pod, all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(e v1.Event) bool { return client.PodOf(&e) != pod })
	}
	if o.Watch {
		return watchEvents(ctx, w, o, k, pod, all)
	}
	return printEvents(w, o, all)
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
	t.Print(&out)
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
	print.Table
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
	t.Add(print.PlainCells(head)...)
	return t
}

func (t *eventTable) addEvent(e *v1.Event, now time.Time) {
	row := print.PlainCells([]string{lastSeen(e, now), e.Type, e.Reason, objectOf(e), e.Message})
	if t.wide {
		source := e.Source.Component
		if e.Source.Host != "" {
			source += ", " + e.Source.Host
		}
		first := duration.HumanDuration(now.Sub(e.FirstTimestamp.Time))
		row = slices.Insert(row, len(row)-1, print.PlainCells([]string{containerOfEvent(e), source, first, fmt.Sprint(e.Count)})...)
		row[0].Text = duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
	}
	if t.color && e.Type == v1.EventTypeWarning {
		row[1].Color = print.Yellow
	}
	if t.namespaces {
		row = slices.Insert(row, 0, print.Cell{Text: e.Namespace})
	}
	t.Add(row...)
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
		name = print.ShortName(client.PodStub(e))
	}
	return strings.ToLower(e.InvolvedObject.Kind) + "/" + strings.TrimPrefix(name, "/")
}

// containerOfEvent is the container that an event is about, "" if none.
func containerOfEvent(e *v1.Event) string {
	_, rest, _ := strings.Cut(e.InvolvedObject.FieldPath, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}

func eventsCommand() *command {
	var o EventsOptions
	return &command{
		name: "events", args: "[POD]", usage: "show what happened to pods and the node, or to one pod",
		about: "The latest come last. A POD is meant by its name in the manifest or its full name, with its\n" +
			"namespace before it if that is not enough, as in kube-system/web. It may be gone already.\n" +
			"Where the agent does not run, this is said on standard error and what it left is shown.",
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Watch, "watch", "w", false, "go on with what happens from now on")
			outputFlag(f, &o.Output, "wide, json or yaml")
			sourceFlags(f, &o.Source)
		},
		run: func(ctx context.Context, c *Call) error {
			if len(c.args) > 1 {
				return exit(exitUsage, "events takes one pod, got %q too", c.args[1])
			}
			if len(c.args) == 1 {
				o.Pod = c.args[0]
			}
			o.Color, o.Err = Colored(c.Out, os.Getenv), c.Err
			return Events(ctx, c.Out, o)
		},
	}
}
