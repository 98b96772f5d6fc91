package update

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"monopod/agent/podspec"
	"monopod/manifests/defaults"
)

// Compare returns how the next version of a pod differs from the one that runs. Both are
// as accepted: with their defaults and their identity. What differs for each instance
// does not count: the status, computed uids, what the agent annotates.
func Compare(old, new *v1.Pod) Verdict {
	c := &comparison{old: manifestOf(old), new: manifestOf(new), touched: map[string]Kind{}}
	c.structs(place{path: "metadata", kind: Replace}, reflect.ValueOf(c.old.ObjectMeta), reflect.ValueOf(c.new.ObjectMeta))
	c.structs(place{path: "spec", kind: Replace}, reflect.ValueOf(c.old.Spec), reflect.ValueOf(c.new.Spec))
	if was, is := podspec.QosClass(c.old), podspec.QosClass(c.new); was != is { // the pod's cgroup is at another place
		c.add(place{path: "status.qosClass", kind: Replace}, string(was)+" -> "+string(is))
	}
	return c.verdict()
}

// manifestOf returns a pod without its status and without the toleration that all pods of
// files get. It shares the rest with p.
func manifestOf(p *v1.Pod) *v1.Pod {
	out := *p
	out.Status = v1.PodStatus{}
	out.Spec.Tolerations = slices.DeleteFunc(slices.Clone(p.Spec.Tolerations), func(t v1.Toleration) bool {
		return t == v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	})
	return &out
}

// running returns the containers that run side by side.
func running(p *v1.Pod) []*v1.Container {
	var out []*v1.Container
	for _, c := range defaults.Running(&p.Spec) {
		out = append(out, c)
	}
	return out
}

// comparison gathers the fields in which two versions differ.
type comparison struct {
	old, new *v1.Pod
	fields   []Field
	touched  map[string]Kind // what becomes of regular containers
}

// place is where a comparison is.
type place struct {
	path      string
	kind      Kind   // of what differs here
	least     Kind   // of all that differs below
	container string // the regular container that it is in; "": none
	source    string // see Field
	whole     bool   // kind is that of all below, too
	mute      bool   // values are not told
	name      string // of the field, such as PodSpec.HostUsers; "" in a list
}

// in returns a place below this one.
func (p place) in(format string, args ...any) place {
	p.path += fmt.Sprintf(format, args...)
	p.name = ""
	return p
}

// of returns a place with another kind.
func (p place) of(k Kind) place {
	p.kind = k
	return p
}

// add records a difference.
func (c *comparison) add(p place, change string) {
	k := max(p.kind, p.least)
	if k == Restart && p.container != "" && c.ends(p.container) {
		k = Replace
	}
	c.fields = append(c.fields, Field{Path: p.path, Kind: k, Change: change, source: p.source})
	if p.container != "" {
		c.touch(p.container, k)
	}
}

func (c *comparison) touch(container string, k Kind) {
	c.touched[container] = max(c.touched[container], k)
}

// ends reports whether a container runs to its end in either version: one that may have
// ended cannot restart, and its pod starts over as a whole.
func (c *comparison) ends(container string) bool {
	for _, p := range []*v1.Pod{c.old, c.new} {
		for i := range p.Spec.Containers {
			ct := &p.Spec.Containers[i]
			if ct.Name == container && defaults.RestartPolicyOf(p, ct) != v1.RestartPolicyAlways {
				return true
			}
		}
	}
	return false
}

// structs compares the fields of two structs of one type.
func (c *comparison) structs(p place, a, b reflect.Value) {
	t := a.Type()
	kinds := kindsOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		next := p.in("%s", suffix(f))
		next.name = t.Name() + "." + f.Name
		if k, ok := kinds[f.Name]; ok && !p.whole {
			next.kind = k
		}
		switch {
		case next.kind == Nothing:
		case next.kind == ruled:
			c.rule(next.of(p.kind), a.Field(i), b.Field(i))
		case next.kind == inner:
			c.values(next.of(p.kind), a.Field(i), b.Field(i))
		default:
			next.whole = true
			next.mute = p.mute || next.name == "HTTPHeader.Value"
			c.values(next, a.Field(i), b.Field(i))
		}
	}
}

// suffix is what a field adds to the path.
func suffix(f reflect.StructField) string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && strings.Contains(options, "inline") {
		return ""
	}
	return "." + name
}

// values compares two values of one type.
func (c *comparison) values(p place, a, b reflect.Value) {
	if equality.Semantic.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	switch a.Kind() {
	case reflect.Pointer:
		c.pointers(p, a, b)
	case reflect.Struct:
		if opaque(a) {
			c.add(p, change(p, a, b))
		} else {
			c.structs(p, a, b)
		}
	case reflect.Map:
		c.maps(p, a, b)
	case reflect.Slice:
		if a.Type().Elem().Kind() == reflect.Struct {
			c.lists(p, a, b)
		} else {
			c.add(p, change(p, a, b))
		}
	default:
		c.add(p, change(p, a, b))
	}
}

func (c *comparison) pointers(p place, a, b reflect.Value) {
	x, y := a, b
	if value := unset(p.name); value != nil {
		for _, v := range []*reflect.Value{&x, &y} {
			if v.IsNil() {
				*v = reflect.ValueOf(value)
			}
		}
		if equality.Semantic.DeepEqual(x.Interface(), y.Interface()) {
			return
		}
	}
	if aggregate := a.Type().Elem().Kind() == reflect.Struct && !opaque(reflect.New(a.Type().Elem()).Elem()); !aggregate {
		c.add(p, change(p, a, b))
		return
	}
	switch {
	case x.IsNil():
		c.add(p, added)
	case y.IsNil():
		c.add(p, removed)
	default:
		c.values(p, x.Elem(), y.Elem())
	}
}

// maps compares two maps with keys of text.
func (c *comparison) maps(p place, a, b reflect.Value) {
	keys := map[string]reflect.Value{}
	for _, k := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		keys[k.String()] = k
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		x, y := a.MapIndex(keys[name]), b.MapIndex(keys[name])
		if x.IsValid() && y.IsValid() && equality.Semantic.DeepEqual(x.Interface(), y.Interface()) {
			continue
		}
		at := p.in("[%s]", name)
		if p.name == "ObjectMeta.Labels" {
			at.source = "metadata.labels['" + name + "']"
		}
		c.add(at, change(at, x, y))
	}
}

// lists compares two lists of structs: by the names of their elements, else by their places.
func (c *comparison) lists(p place, a, b reflect.Value) {
	was, named := names(a)
	is, also := names(b)
	if !named || !also {
		for i := range max(a.Len(), b.Len()) {
			c.element(p.in("[%d]", i), at(a, i), at(b, i))
		}
		return
	}
	for _, name := range was {
		if !slices.Contains(is, name) {
			c.add(p.in("[%s]", name), removed)
		}
	}
	for i, name := range is {
		c.element(p.in("[%s]", name), at(a, slices.Index(was, name)), b.Index(i))
	}
	if p.name != "PodSpec.Volumes" && moved(was, is) {
		c.add(p, "in another order")
	}
}

// element compares elements of lists, of which one may be missing.
func (c *comparison) element(p place, a, b reflect.Value) {
	switch {
	case !a.IsValid():
		c.add(p, added)
	case !b.IsValid():
		c.add(p, removed)
	default:
		c.values(p, a, b)
	}
}

func at(list reflect.Value, i int) reflect.Value {
	if i < 0 || i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

// names returns the names by which the elements of a list are told apart, if they can be.
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

// moved reports whether the names that two lists share stand in another order.
func moved(was, is []string) bool {
	lacks := func(list []string) func(string) bool {
		return func(name string) bool { return !slices.Contains(list, name) }
	}
	return !slices.Equal(slices.DeleteFunc(slices.Clone(was), lacks(is)), slices.DeleteFunc(slices.Clone(is), lacks(was)))
}
