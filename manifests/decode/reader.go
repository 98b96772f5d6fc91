package decode

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IsMisread reports whether a field could not be read, or what it is in, or a part of
// it, so that validation of it means nothing.
func (r *Reader) IsMisread(o Object, path string) bool {
	if len(r.misread) == 0 {
		return false
	}
	path = PathText(Under(o.Path, path))
	return slices.ContainsFunc(r.misread, func(m string) bool { return m == "" || isPart(path, m) || isPart(m, path) })
}

// isPart reports whether a field is another one or a part of it.
func isPart(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Under puts a path that is relative to an object behind the object's own.
func Under(base *field.Path, path string) *field.Path {
	if path == "" {
		return base
	}
	return base.Child(path)
}

const (
	// MaxProblems bounds the problems reported about one document.
	MaxProblems = 50
	// maxSaid bounds the length of one message, in bytes.
	maxSaid = 1000
)

// Reader fills Go values from nodes and reports every misfit with its place.
// It decodes as the kubelet does: field names are case-sensitive, null leaves
// a field unset, a number is never taken for a string.
type Reader struct {
	File       string
	Line       int    // added to the lines of nodes
	Validation string // Strict, Warn or Ignore: unknown and duplicate fields
	Problems   []Problem
	misread    []string // paths whose values do not fit
	Tables     map[reflect.Type]FieldTable
}

// full reports whether so much is wrong that nothing more is read or said.
func (r *Reader) full() bool { return len(r.Problems) >= MaxProblems }

// Report adds a problem at a node.
func (r *Reader) Report(n *yaml.Node, p *field.Path, text string, warning bool) {
	if r.full() {
		return
	}
	if len(r.Problems) == MaxProblems-1 {
		text, warning = "too many problems, the rest is left out: "+text, false
	}
	r.Problems = append(r.Problems, Problem{
		File: r.File, Line: n.Line + r.Line, Column: n.Column,
		Field: clipAt(PathText(p), maxSaid/2), Message: clipAt(text, maxSaid), Warning: warning,
	})
}

// fail reports a value that does not fit.
func (r *Reader) fail(n *yaml.Node, p *field.Path, text string) {
	r.misread = append(r.misread, PathText(p))
	r.Report(n, p, text, false)
}

// strict reports what only strict validation refuses.
func (r *Reader) strict(n *yaml.Node, p *field.Path, text string) {
	if r.Validation != "Ignore" {
		r.Report(n, p, text, r.Validation == "Warn")
	}
}

// Value sets v to what n says. key is n's key, nil in a list.
func (r *Reader) Value(key, n *yaml.Node, v reflect.Value, p *field.Path) {
	if r.full() {
		return
	}
	at := place(key, n)
	if n = Follow(n); IsNull(n) {
		v.SetZero()
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		r.custom(at, n, u, p)
		return
	}
	switch {
	case v.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		r.object(n, v, p)
	case v.Type() == reflect.TypeFor[Fields]() && n.Kind == yaml.MappingNode:
		r.targets(n, v.Interface().(Fields), p)
	case v.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		r.mapping(n, v, p)
	case v.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		r.list(n, v, p)
	case n.Kind == yaml.ScalarNode && setScalar(v, scalar(n)):
	default:
		r.fail(at, p, misfit(v, n))
	}
}

// list fills a slice.
func (r *Reader) list(n *yaml.Node, v reflect.Value, p *field.Path) {
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		r.Value(nil, item, items.Index(i), p.Index(i))
	}
	v.Set(items)
}

// custom fills a type that reads JSON itself, such as a quantity.
func (r *Reader) custom(at, n *yaml.Node, u json.Unmarshaler, p *field.Path) {
	text, err := json.Marshal(r.generic(n, p))
	if _, ok := u.(*resource.Quantity); ok && !bearable(strings.Trim(string(text), `"`)) {
		err = resource.ErrFormatWrong
	}
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		r.fail(at, p, customMisfit(u, n))
	}
}

// generic returns a node as maps, lists and scalars, ready for JSON.
func (r *Reader) generic(n *yaml.Node, p *field.Path) any {
	switch n = Follow(n); n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, e := range r.entries(n, p) {
			m[e.name] = r.generic(e.value, p)
		}
		return m
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, item := range n.Content {
			items[i] = r.generic(item, p)
		}
		return items
	}
	return scalar(n)
}

// setScalar sets v to a scalar if it fits.
func setScalar(v reflect.Value, s any) bool {
	if f, ok := s.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		if v.CanInt() {
			s = int64(f)
		}
	}
	switch s := s.(type) {
	case string:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			b, err := base64.StdEncoding.DecodeString(s)
			v.SetBytes(b)
			return err == nil
		}
		if v.Kind() == reflect.String {
			v.SetString(s)
			return true
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(s)
			return true
		}
	case int64:
		if v.CanInt() && !v.OverflowInt(s) {
			v.SetInt(s)
			return true
		}
	}
	return false
}

// PathText is "" for the document itself.
func PathText(p *field.Path) string {
	if p == nil {
		return ""
	}
	return p.String()
}
