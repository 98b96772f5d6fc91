package manifests

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldTable maps the JSON names of a struct's fields to their index paths.
type fieldTable map[string][]int

// fields returns the field table of a struct type.
func (r *reader) fields(t reflect.Type) fieldTable {
	if table, ok := r.tables[t]; ok {
		return table
	}
	table := make(fieldTable, t.NumField())
	table.add(t, nil)
	r.tables[t] = table
	return table
}

func (f fieldTable) add(t reflect.Type, prefix []int) {
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
func (r *reader) entries(n *yaml.Node, p *field.Path, depth int) []entry {
	list := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			merged = append(merged, value)
			continue
		}
		name, ok := keyText(follow(key))
		if !ok {
			r.fail(key, p, "the key must be a string, got "+describe(follow(key)))
			continue
		}
		if first, ok := seen[name]; ok {
			r.strict(key, child(p, name), fmt.Sprintf("duplicate field %q: it stands on line %d already",
				clip(name), list[first].key.Line+r.line))
			list[first] = entry{name, key, value}
			continue
		}
		seen[name] = len(list)
		list = append(list, entry{name, key, value})
	}
	for _, m := range merged {
		list = r.merge(list, seen, m, p, depth)
	}
	return list
}

// merge adds the entries that a merge key brings and that are not there yet.
func (r *reader) merge(list []entry, seen map[string]int, source *yaml.Node, p *field.Path, depth int) []entry {
	if !r.enter(source, p, depth) {
		return list
	}
	aliased := source.Kind == yaml.AliasNode
	if aliased {
		r.aliases++
		defer func() { r.aliases-- }()
	}
	switch target := follow(source); target.Kind {
	case yaml.SequenceNode:
		for _, item := range target.Content {
			list = r.merge(list, seen, item, p, depth+1)
		}
	case yaml.MappingNode:
		for _, e := range r.entries(target, p, depth+1) {
			if _, ok := seen[e.name]; !ok && r.enter(e.value, p, depth) {
				seen[e.name] = len(list)
				list = append(list, e)
			}
		}
	default:
		r.fail(source, p, "<< merges objects, got "+describe(target))
	}
	return list
}

// object fills a struct.
func (r *reader) object(n *yaml.Node, v reflect.Value, p *field.Path, depth int) {
	table := r.fields(v.Type())
	for _, e := range r.entries(n, p, depth) {
		index, ok := table[e.name]
		if !ok {
			r.unknown(e, p, nearest(e.name, table))
			continue
		}
		r.value(e.key, e.value, v.FieldByIndex(index), p.Child(e.name), depth+1)
	}
}

// targets fills what fields point to.
func (r *reader) targets(n *yaml.Node, fields Fields, p *field.Path, depth int) {
	for _, e := range r.entries(n, p, depth) {
		switch to := fields[e.name].(type) {
		case nil:
			r.unknown(e, p, nearest(e.name, fields))
		case Fields:
			r.value(e.key, e.value, reflect.ValueOf(&to).Elem(), p.Child(e.name), depth+1)
		default:
			r.value(e.key, e.value, reflect.ValueOf(to).Elem(), p.Child(e.name), depth+1)
		}
	}
}

// unknown reports a field that the type does not have; near is one that it has
// and that may be meant.
func (r *reader) unknown(e entry, p *field.Path, near string) {
	text := fmt.Sprintf("unknown field %q", clip(e.key.Value))
	if near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
		if r.validation != "Warn" && r.validation != "Ignore" {
			r.misread = append(r.misread, pathText(child(p, near))) // that it is missing need not be said too
		}
	}
	r.strict(e.key, child(p, e.name), text)
}

// mapping fills a map, whose keys are strings.
func (r *reader) mapping(n *yaml.Node, v reflect.Value, p *field.Path, depth int) {
	t := v.Type()
	list := r.entries(n, p, depth)
	v.Set(reflect.MakeMapWithSize(t, len(list)))
	for _, e := range list {
		value := reflect.New(t.Elem()).Elem()
		r.value(e.key, e.value, value, p.Key(e.name), depth+1)
		v.SetMapIndex(reflect.ValueOf(e.name).Convert(t.Key()), value)
	}
}

// child extends a path by a name that may be hostile.
func child(p *field.Path, name string) *field.Path {
	return p.Child(strings.ToValidUTF8(clip(name), "?"))
}
