package print

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"monopod/agent/status"
)

// UsedObject is a ConfigMap or a Secret of a manifest file, and its users.
type UsedObject struct {
	Kind   string       `json:"kind"`
	Name   string       `json:"name"` // namespace/name
	State  status.State `json:"state,omitempty"`
	Reason string       `json:"reason,omitempty"` // why it is not accepted
	File   string       `json:"file"`
	Pods   []string     `json:"pods,omitempty"` // namespace/name, without the node
}

// ObjectsOf returns the objects of a namespace, "" for all, sorted by kind and name.
func ObjectsOf(m status.Manifests, namespace, node string) []UsedObject {
	all := []UsedObject{}
	take := func(f status.File, o status.Object, state status.State) {
		if namespace != "" && !strings.HasPrefix(o.Name, namespace+"/") {
			return
		}
		u := UsedObject{Kind: o.Kind, Name: o.Name, State: state, Reason: o.Reason, File: within(m.Base(), f.Path)}
		for _, pod := range o.Pods {
			u.Pods = append(u.Pods, short(pod, node))
		}
		all = append(all, u)
	}
	for _, f := range m.Files {
		for _, o := range f.Objects {
			take(f, o, o.State)
		}
	}
	for _, f := range m.Leaving {
		for _, o := range f.Objects {
			take(f, o, leaving)
		}
	}
	slices.SortStableFunc(all, func(a, b UsedObject) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
	return all
}

// Objects prints a table of objects, as json or yaml the list, as name a line for each in the form
// of `monopod forget`; if there are none, that sentence, which goes to notes unless w is a
// terminal.
func Objects(w, notes io.Writer, all []UsedObject, none string, f Format) error {
	var out bytes.Buffer
	switch {
	case f.Output == "json" || f.Output == "yaml":
		return As(w, f.Output, all)
	case f.Output == "name":
		for _, o := range all {
			fmt.Fprintln(&out, o.title())
		}
		_, err := w.Write(out.Bytes())
		return err
	case len(all) == 0:
		return f.write(w, notes, &out, []string{none})
	}
	t := &Table{columns: f.Columns}
	if !f.NoHeaders {
		t.Line("OBJECT", "STATE", "FILE", "USED BY")
	}
	for _, o := range all {
		row := plainCells([]string{o.title(), string(o.State), o.File, strings.Join(o.Pods, ", ")})
		if f.Color {
			row[1].Color = stateColors[o.State]
		}
		t.add(row...)
	}
	t.Print(&out)
	return f.write(w, notes, &out, nil)
}

func (o *UsedObject) title() string { return strings.ToLower(o.Kind) + "/" + o.Name }
