package decode

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Settings is a file of settings that was read as strictly as a manifest, and its
// problems. One goroutine uses it.
type Settings struct {
	reader Reader
	root   Object
}

// Fields are the fields of an object by name. Each has a pointer to where its
// value goes, or Fields if it is an object itself.
type Fields map[string]any

// ReadSettings fills what out points to from the only document of a file, YAML
// or JSON. Fields that are absent or null are left alone, as are all in a file
// that says nothing. Whether the values are of use is told by Problems.
func ReadSettings(file string, data []byte, out Fields) *Settings {
	empty := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	s := &Settings{reader: Reader{File: file}, root: Object{Node: empty, value: map[string]any{}, doc: &reading{}}}
	if len(data) >= MaxSize {
		s.reader.Report(s.root, empty, "", "larger than 10 MiB: this is no file of settings", false)
		return s
	}
	for d := range Documents(data) {
		switch {
		case d.Err.Message != "":
			d.Err.File = file
			s.reader.Problems = append(s.reader.Problems, d.Err)
			return s
		case s.root.Node != empty:
			s.reader.Report(d.Object(), d.Root, "", "a second document: settings are one", false)
			return s
		}
		s.root = d.Object()
	}
	if node := Follow(s.root.Node); node.Kind != yaml.MappingNode {
		s.reader.Report(s.root, node, "", "expected settings by name, got "+Describe(node), false)
		return s
	}
	s.reader.duplicates(s.root)
	s.fill("", out, s.root.value.(map[string]any))
	return s
}

// fill takes the values of the object at a path.
func (s *Settings) fill(path string, fields Fields, object map[string]any) {
	types := map[string]reflect.Type{}
	for name, to := range fields {
		types[name] = reflect.TypeOf(to).Elem()
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at, v := Join(path, name), object[name]
		inner, isObject := v.(map[string]any)
		switch to := fields[name].(type) {
		case nil:
			s.reader.unknown(s.root, path, name, types)
		case Fields:
			if isObject {
				s.fill(at, to, inner)
			} else {
				s.reader.fitting(s.root, at, reflect.TypeFor[struct{}](), v) // which takes any object
			}
		default:
			if v = s.reader.fitting(s.root, at, types[name], v); v != nil {
				_, _ = unmarshal(v, to) // it fits
			}
		}
	}
}

// Refuse reports a problem with the value of a field, such as a.b[0] or a[key],
// unless the value could not be read, which is reported already.
func (s *Settings) Refuse(field, format string, args ...any) {
	s.note(field, fmt.Sprintf(format, args...), false)
}

// Warn reports a value that is accepted but has another effect than it seems.
func (s *Settings) Warn(field, format string, args ...any) {
	s.note(field, fmt.Sprintf(format, args...), true)
}

func (s *Settings) note(path, text string, warning bool) {
	if !s.reader.IsMisread(s.root, path) {
		s.reader.Report(s.root, Find(s.root.Node, path), path, text, warning)
	}
}

// Problems returns all that is wrong, warnings too, in order of line.
func (s *Settings) Problems() []Problem {
	slices.SortStableFunc(s.reader.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.reader.Problems
}
