package manifests

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxAliased bounds the nodes that aliases and merge keys may add to a file.
	maxAliased = 100_000
	// maxProblems bounds what is said about one document.
	maxProblems = 50
)

// reader fills Go values from nodes and reports every misfit with its place.
// It decodes as the kubelet does: field names are case-sensitive, null leaves
// a field unset, a number is never taken for a string.
type reader struct {
	file       string
	line       int    // added to the lines of nodes
	validation string // Strict, Warn or Ignore: unknown and duplicate fields
	problems   []Problem
	misread    []string // paths whose values do not fit
	tables     map[reflect.Type]fieldTable
	aliases    int // how many aliases the current node is under
	aliased    int // nodes visited under aliases
}

// report adds a problem at a node.
func (r *reader) report(n *yaml.Node, p *field.Path, text string, warning bool) {
	if len(r.problems) >= maxProblems {
		return
	}
	if len(r.problems) == maxProblems-1 {
		text, warning = "too many problems, the rest is left out: "+text, false
	}
	r.problems = append(r.problems, Problem{
		File: r.file, Line: n.Line + r.line, Column: n.Column,
		Field: pathText(p), Message: text, Warning: warning,
	})
}

// fail reports a value that does not fit.
func (r *reader) fail(n *yaml.Node, p *field.Path, text string) {
	r.misread = append(r.misread, pathText(p))
	r.report(n, p, text, false)
}

// strict reports what only strict validation refuses.
func (r *reader) strict(n *yaml.Node, p *field.Path, text string) {
	if r.validation != "Ignore" {
		r.report(n, p, text, r.validation == "Warn")
	}
}

// enter says if a node may be visited: not too deep, and not part of an
// alias bomb. It reports a refusal once.
func (r *reader) enter(n *yaml.Node, p *field.Path, depth int) bool {
	if depth > maxDepth {
		r.fail(n, nil, fmt.Sprintf("nested deeper than %d levels", maxDepth))
		return false
	}
	if r.aliases == 0 && n.Kind != yaml.AliasNode {
		return true
	}
	r.aliased++
	if r.aliased == maxAliased {
		r.fail(n, p, fmt.Sprintf("the aliases expand to more than %d values", maxAliased))
	}
	return r.aliased < maxAliased
}

// value sets v to what n says. key is n's key, nil in a list.
func (r *reader) value(key, n *yaml.Node, v reflect.Value, p *field.Path, depth int) {
	if !r.enter(n, p, depth) {
		return
	}
	at := place(key, n)
	if n.Kind == yaml.AliasNode {
		r.aliases++
		defer func() { r.aliases-- }()
		n = follow(n)
	}
	if isNull(n) {
		v.SetZero()
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		r.custom(at, n, u, p, depth)
		return
	}
	switch {
	case v.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		r.object(n, v, p, depth)
	case v.Type() == reflect.TypeFor[Fields]() && n.Kind == yaml.MappingNode:
		r.targets(n, v.Interface().(Fields), p, depth)
	case v.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		r.mapping(n, v, p, depth)
	case v.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		r.list(n, v, p, depth)
	case n.Kind == yaml.ScalarNode && setScalar(v, scalar(n)):
	default:
		r.fail(at, p, misfit(v, n))
	}
}

// list fills a slice.
func (r *reader) list(n *yaml.Node, v reflect.Value, p *field.Path, depth int) {
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		r.value(nil, item, items.Index(i), p.Index(i), depth+1)
	}
	v.Set(items)
}

// custom fills a type that reads JSON itself, such as a quantity.
func (r *reader) custom(at, n *yaml.Node, u json.Unmarshaler, p *field.Path, depth int) {
	generic, err := r.generic(n, p, depth)
	if err != nil {
		r.fail(at, p, err.Error())
		return
	}
	text, err := json.Marshal(generic)
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		r.fail(at, p, customMisfit(u, n))
	}
}

// generic returns a node as maps, lists and scalars, ready for JSON.
func (r *reader) generic(n *yaml.Node, p *field.Path, depth int) (any, error) {
	if !r.enter(n, p, depth) {
		return nil, fmt.Errorf("too deep or too large")
	}
	if n.Kind == yaml.AliasNode {
		r.aliases++
		defer func() { r.aliases-- }()
		n = follow(n)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, e := range r.entries(n, p, depth) {
			value, err := r.generic(e.value, p, depth+1)
			if err != nil {
				return nil, err
			}
			m[e.name] = value
		}
		return m, nil
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, item := range n.Content {
			value, err := r.generic(item, p, depth+1)
			if err != nil {
				return nil, err
			}
			items[i] = value
		}
		return items, nil
	}
	return scalar(n), nil
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

// pathText is "" for the document itself.
func pathText(p *field.Path) string {
	if p == nil {
		return ""
	}
	return p.String()
}
