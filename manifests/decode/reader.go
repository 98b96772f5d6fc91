package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

const (
	// MaxProblems bounds the errors reported about one document, and the warnings.
	MaxProblems = 50
	// maxSaid is the longest message, in bytes.
	maxSaid = 1000
)

// Reader fills Go values from objects and reports every value that does not fit, with its position.
// It decodes as the kubelet does: field names are case-sensitive, null leaves a field unset, a
// number is not accepted as a string.
type Reader struct {
	File       string
	Validation string // Strict, Warn or Ignore: unknown and duplicate fields
	Problems   []Problem
	errors     int      // among them
	misread    []string // paths whose values do not fit
	known      map[reflect.Type]map[string]reflect.Type
}

// full reports whether there are so many errors that reading and reporting stop.
func (r *Reader) full() bool { return r.errors >= MaxProblems }

// isEnough reports whether there are so many problems of a kind that no more of it are reported. Warnings
// do not count as errors: however many there are, they refuse nothing and hide no error.
func (r *Reader) isEnough(warning bool) bool {
	return r.full() || warning && r.warnings() >= MaxProblems
}

func (r *Reader) warnings() int { return len(r.Problems) - r.errors }

// Report adds a problem at a node of an object.
func (r *Reader) Report(o Object, n *yaml.Node, p string, t Message, warning bool) {
	if r.isEnough(warning) {
		return
	}
	problem := o.Problem(r.File, n, p, t)
	problem.Warning = warning
	switch {
	case warning && r.warnings() == MaxProblems-1:
		problem.Message = "too many warnings, the rest is left out: " + problem.Message
	case !warning && r.errors == MaxProblems-1:
		problem.Message = "too many problems, the rest is left out: " + problem.Message
	}
	problem.Field, problem.Message = clipAt(problem.Field, maxSaid/2), clipAt(problem.Message, maxSaid)
	r.Problems = append(r.Problems, problem)
	if !warning {
		r.errors++
	}
}

// strict reports a problem that only strict validation refuses.
func (r *Reader) strict(o Object, n *yaml.Node, p string, t Message) {
	if r.Validation != "Ignore" {
		r.Report(o, n, p, t, r.isLenient())
	}
}

// isLenient reports whether what only strict validation refuses is a warning.
func (r *Reader) isLenient() bool { return r.Validation == "Warn" }

// IsMisread reports whether a field, its parent or a part of it could not be read, so that
// validating it makes no sense.
func (r *Reader) IsMisread(o Object, path string) bool {
	if len(r.misread) == 0 {
		return false
	}
	path = Join(o.Path, path)
	return slices.ContainsFunc(r.misread, func(m string) bool { return within(m, path) || within(path, m) })
}

// Read fills the value that to points to with everything of an object that fits.
func (r *Reader) Read(o Object, to any) {
	r.duplicates(o)
	if !o.doc.heavy {
		if unknown, err := unmarshal(o.value, to); err == nil && len(unknown) == 0 {
			return
		}
	}
	reflect.ValueOf(to).Elem().SetZero()
	fitting := r.fitting(o, "", reflect.TypeOf(to).Elem(), o.value)
	if _, err := unmarshal(fitting, to); err != nil {
		r.fail(o, o.Node, o.Path, Message{Full: "cannot be read: " + err.Error()})
	}
}

// duplicates reports the fields that an object has more than once.
func (r *Reader) duplicates(o Object) {
	if o.doc.twice == nil {
		return
	}
	each(o.Node, o.Path, func(n *yaml.Node, path string) {
		var again []*yaml.Node
		for ; o.doc.twice[n] != nil; n = o.doc.twice[n] {
			again = append(again, n)
		}
		for _, key := range slices.Backward(again) {
			name, before := Clip(key.Value), o.doc.twice[key]
			line := before.Line + o.Line
			r.strict(o, key, Join(path, name), Message{fmt.Sprintf("duplicate field %q: it stands on line %d already", name, line),
				fmt.Sprintf("duplicate field: it stands on line %d already", line)})
		}
	})
}

// unmarshal decodes as the kubelet does. It also returns the unknown fields.
func unmarshal(value any, to any) (unknown []error, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(text, to, kjson.DisallowUnknownFields)
}

// fitting returns a value without the parts that do not fit a type. It reports them and unknown
// fields itself: the library returns a single error, often without the field, and no positions.
// Quantities that are not bearable never reach the library.
func (r *Reader) fitting(o Object, path string, t reflect.Type, v any) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if r.full() {
		return nil
	}
	kind := t.Kind()
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		kind = reflect.Invalid
	}
	switch v := v.(type) {
	case map[string]any:
		if kind != reflect.Struct && kind != reflect.Map {
			break
		}
		known := r.fields(t)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if kind == reflect.Map {
				v[name] = r.fitting(o, path+"["+name+"]", t.Elem(), v[name])
			} else if inner, ok := known[name]; ok {
				v[name] = r.fitting(o, Join(path, name), inner, v[name])
			} else {
				r.unknown(o, path, name, known)
			}
		}
		return v
	case []any:
		if kind != reflect.Slice {
			break
		}
		for i := range v {
			v[i] = r.fitting(o, path+"["+strconv.Itoa(i)+"]", t.Elem(), v[i])
		}
		return v
	}
	if t != quantityType || bearable(fmt.Sprint(v)) {
		if _, err := unmarshal(v, reflect.New(t).Interface()); err == nil {
			return v
		}
	}
	at, n := find(o.Node, path)
	r.fail(o, at, Join(o.Path, path), misfit(t, n))
	return nil
}

// fail reports a value that does not fit.
func (r *Reader) fail(o Object, n *yaml.Node, p string, t Message) {
	r.misread = append(r.misread, p)
	r.Report(o, n, p, t, false)
}

// unknown reports a field that the object at a path must not have.
func (r *Reader) unknown(o Object, path, name string, known map[string]reflect.Type) {
	if r.isEnough(r.isLenient()) || r.Validation == "Ignore" {
		return
	}
	at, n := find(o.Node, path)
	if key, _ := Lookup(n, name); key != nil {
		at = key
	}
	path = Join(o.Path, path)
	meant := ""
	if near := Nearest(name, known); near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
		if !r.isLenient() {
			r.misread = append(r.misread, Join(path, near)) // so that it is not reported as missing, too
		}
	}
	r.strict(o, at, Join(path, Clip(name)), Message{fmt.Sprintf("unknown field %q%s", Clip(name), meant), "unknown field" + meant})
}
