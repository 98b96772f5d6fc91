package update

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// differences returns the fields in which two pods differ, without their kinds.
func differences(a, b *v1.Pod) []Field {
	var w walk
	w.values(place{path: "metadata"}, reflect.ValueOf(&a.ObjectMeta).Elem(), reflect.ValueOf(&b.ObjectMeta).Elem())
	w.values(place{path: "spec"}, reflect.ValueOf(&a.Spec).Elem(), reflect.ValueOf(&b.Spec).Elem())
	return w.fields
}

// walk collects differences.
type walk struct{ fields []Field }

// place is the position of a walk.
type place struct {
	path string
	name string // of the field, such as Container.Image; "" in a list or a map
}

// in returns the place of an element.
func (p place) in(name string) place { return place{path: p.path + "[" + name + "]"} }

func (w *walk) add(p place, change string) {
	w.fields = append(w.fields, Field{Path: p.path, Change: change})
}

// values compares two values of one type.
func (w *walk) values(p place, a, b reflect.Value) {
	switch t := a.Type(); {
	case t == reflect.TypeFor[[]v1.EnvVar]():
		w.env(p, a.Interface().([]v1.EnvVar), b.Interface().([]v1.EnvVar))
	case t == reflect.TypeFor[[]v1.ContainerPort]():
		w.ports(p, a.Interface().([]v1.ContainerPort), b.Interface().([]v1.ContainerPort))
	case isAggregate(t):
		w.structs(p, a, b)
	case t.Kind() == reflect.Pointer && isAggregate(t.Elem()):
		w.elements(p, a.Elem(), b.Elem())
	case t.Kind() == reflect.Slice && isAggregate(t.Elem()):
		w.lists(p, a, b)
	case t.Kind() == reflect.Map:
		w.maps(p, a, b)
	case !equality.Semantic.DeepEqual(a.Interface(), b.Interface()):
		w.add(p, change(p, a, b))
	}
}

// structs compares the fields of two structs of one type.
func (w *walk) structs(p place, a, b reflect.Value) {
	t := a.Type()
	for i := range t.NumField() {
		f, x, y := t.Field(i), a.Field(i), b.Field(i)
		if !reflect.DeepEqual(x.Addr().Interface(), y.Addr().Interface()) { // a quick check, which misses equal amounts
			w.values(place{p.path + suffix(f), t.Name() + "." + f.Name}, x, y)
		}
	}
}

// suffix returns what a field adds to the path.
func suffix(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && strings.Contains(options, "inline") {
		return ""
	}
	return "." + name
}

// maps compares two maps with keys of text.
func (w *walk) maps(p place, a, b reflect.Value) {
	keys := map[string]reflect.Value{}
	for _, k := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		keys[k.String()] = k
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		x, y := a.MapIndex(keys[name]), b.MapIndex(keys[name])
		if !x.IsValid() || !y.IsValid() || !equality.Semantic.DeepEqual(x.Interface(), y.Interface()) {
			w.add(p.in(name), change(p.in(name), x, y))
		}
	}
}

// lists compares two lists of structs: by the names of their elements, or by index if they have no
// names.
func (w *walk) lists(p place, a, b reflect.Value) {
	was, named := names(a)
	is, also := names(b)
	if !named || !also {
		for i := range max(a.Len(), b.Len()) {
			w.elements(p.in(fmt.Sprint(i)), at(a, i), at(b, i))
		}
		return
	}
	for _, name := range was {
		if !slices.Contains(is, name) {
			w.add(p.in(name), removed)
		}
	}
	for i, name := range is {
		w.elements(p.in(name), at(a, slices.Index(was, name)), b.Index(i))
	}
	if moved(was, is) {
		w.add(p, "in another order")
	}
}

// elements compares the elements of a list or the value of a pointer, of which one may be missing.
func (w *walk) elements(p place, a, b reflect.Value) {
	switch {
	case !a.IsValid():
		w.add(p, added)
	case !b.IsValid():
		w.add(p, removed)
	default:
		w.values(p, a, b)
	}
}

func at(list reflect.Value, i int) reflect.Value {
	if i < 0 || i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

// names returns the names that identify the elements of a list, if they have unique ones.
func names(list reflect.Value) (all []string, ok bool) {
	by := "Name"
	if list.Type().Elem() == reflect.TypeFor[v1.VolumeMount]() {
		by = "MountPath"
	}
	for i := range list.Len() {
		name := list.Index(i).FieldByName(by)
		if !name.IsValid() || name.Kind() != reflect.String || name.String() == "" || slices.Contains(all, name.String()) {
			return nil, false
		}
		all = append(all, name.String())
	}
	return all, true
}

// moved reports whether the names that two lists share have another order.
func moved(was, is []string) bool {
	lacks := func(list []string) func(string) bool {
		return func(name string) bool { return !slices.Contains(list, name) }
	}
	return !slices.Equal(slices.DeleteFunc(slices.Clone(was), lacks(is)), slices.DeleteFunc(slices.Clone(is), lacks(was)))
}

// env compares variables by their names, and omits their values.
func (w *walk) env(p place, old, new []v1.EnvVar) {
	was, is := variables(old), variables(new)
	before := len(w.fields)
	for _, name := range is.names {
		switch {
		case was.of[name] == nil:
			w.add(p.in(name), added)
		case !equality.Semantic.DeepEqual(was.of[name], is.of[name]):
			w.add(p.in(name), changed)
		}
	}
	for _, name := range was.names {
		if is.of[name] == nil {
			w.add(p.in(name), removed)
		}
	}
	if len(w.fields) == before && !equality.Semantic.DeepEqual(old, new) {
		w.add(p, "in another order")
	}
}

type variableList struct {
	names []string // each once
	of    map[string][]v1.EnvVar
}

func variables(all []v1.EnvVar) variableList {
	l := variableList{of: map[string][]v1.EnvVar{}}
	for _, v := range all {
		if l.of[v.Name] == nil {
			l.names = append(l.names, v.Name)
		}
		l.of[v.Name] = append(l.of[v.Name], v)
	}
	return l
}

func (w *walk) ports(p place, old, new []v1.ContainerPort) {
	if !slices.Equal(old, new) {
		w.add(p, shorten(portWords(old), portWords(new)))
	}
}
