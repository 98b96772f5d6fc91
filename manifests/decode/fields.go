package decode

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FieldTable maps the JSON names of a struct's fields to their index paths.
type FieldTable map[string][]int

// fields returns the field table of a struct type.
func (r *Reader) fields(t reflect.Type) FieldTable {
	if table, ok := r.Tables[t]; ok {
		return table
	}
	table := make(FieldTable, t.NumField())
	table.add(t, nil)
	r.Tables[t] = table
	return table
}

func (f FieldTable) add(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		index := append(slices.Clone(prefix), i)
		switch {
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			f.add(sf.Type, index)
		case sf.IsExported() && name != "" && name != "-":
			f[name] = index
		}
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries returns a mapping's entries in order, merged ones last. Of two
// with one name the later wins, and is reported.
func (r *Reader) entries(n *yaml.Node, p *field.Path) []entry {
	list := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			merged = append(merged, value)
			continue
		}
		name, ok := keyText(Follow(key))
		if !ok {
			r.fail(key, p, "the key must be a string, got "+Describe(Follow(key)))
			continue
		}
		if first, ok := seen[name]; ok {
			r.strict(key, child(p, name), fmt.Sprintf("duplicate field %q: it stands on line %d already",
				Clip(name), list[first].key.Line+r.Line))
			list[first] = entry{name, key, value}
			continue
		}
		seen[name] = len(list)
		list = append(list, entry{name, key, value})
	}
	for _, m := range merged {
		list = r.merge(list, seen, m, p)
	}
	return list
}

// merge adds the entries that a merge key brings and that are not there yet.
func (r *Reader) merge(list []entry, seen map[string]int, source *yaml.Node, p *field.Path) []entry {
	switch target := Follow(source); target.Kind {
	case yaml.SequenceNode:
		for _, item := range target.Content {
			list = r.merge(list, seen, item, p)
		}
	case yaml.MappingNode:
		for _, e := range r.entries(target, p) {
			if _, ok := seen[e.name]; !ok {
				seen[e.name] = len(list)
				list = append(list, e)
			}
		}
	default:
		r.fail(source, p, "<< merges objects, got "+Describe(target))
	}
	return list
}

// object fills a struct.
func (r *Reader) object(n *yaml.Node, v reflect.Value, p *field.Path) {
	table := r.fields(v.Type())
	for _, e := range r.entries(n, p) {
		index, ok := table[e.name]
		if !ok {
			r.unknown(e, p, Nearest(e.name, table))
			continue
		}
		r.Value(e.key, e.value, v.FieldByIndex(index), p.Child(e.name))
	}
}

// targets fills what fields point to.
func (r *Reader) targets(n *yaml.Node, fields Fields, p *field.Path) {
	for _, e := range r.entries(n, p) {
		switch to := fields[e.name].(type) {
		case nil:
			r.unknown(e, p, Nearest(e.name, fields))
		case Fields:
			r.Value(e.key, e.value, reflect.ValueOf(&to).Elem(), p.Child(e.name))
		default:
			r.Value(e.key, e.value, reflect.ValueOf(to).Elem(), p.Child(e.name))
		}
	}
}

// unknown reports a field that the type does not have; near is one that it has
// and that may be meant.
func (r *Reader) unknown(e entry, p *field.Path, near string) {
	text := fmt.Sprintf("unknown field %q", Clip(e.key.Value))
	if near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
		if r.Validation != "Warn" && r.Validation != "Ignore" {
			r.misread = append(r.misread, PathText(child(p, near))) // that it is missing need not be said too
		}
	}
	r.strict(e.key, child(p, e.name), text)
}

// mapping fills a map, whose keys are strings.
func (r *Reader) mapping(n *yaml.Node, v reflect.Value, p *field.Path) {
	t := v.Type()
	list := r.entries(n, p)
	v.Set(reflect.MakeMapWithSize(t, len(list)))
	for _, e := range list {
		value := reflect.New(t.Elem()).Elem()
		r.Value(e.key, e.value, value, p.Key(e.name))
		v.SetMapIndex(reflect.ValueOf(e.name).Convert(t.Key()), value)
	}
}

// child extends a path by a name that may be hostile.
func child(p *field.Path, name string) *field.Path {
	return p.Child(strings.ToValidUTF8(Clip(name), "?"))
}
