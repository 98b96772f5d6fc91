package decode

import (
	"cmp"
	"fmt"
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
// or JSON. Fields that are absent are left alone, as are all in a file that says
// nothing; null sets the zero value. Whether the values are of use is told by
// Problems.
func ReadSettings(file string, data []byte, out Fields) *Settings {
	empty := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	s := &Settings{reader: Reader{File: file, Tables: map[reflect.Type]FieldTable{}}, root: Object{Node: empty}}
	if len(data) >= MaxSize {
		s.reader.Report(empty, nil, "larger than 10 MiB: this is no file of settings", false)
		return s
	}
	for d := range Documents(data) {
		switch {
		case d.Root == nil:
			d.Err.File = file
			s.reader.Problems = append(s.reader.Problems, d.Err)
			return s
		case s.root.Node != empty:
			s.reader.Line = d.Line
			s.reader.Report(d.Root, nil, "a second document: settings are one", false)
			return s
		}
		s.root, s.reader.Line = Object{Node: d.Root, Line: d.Line}, d.Line
	}
	if node := Follow(s.root.Node); node.Kind != yaml.MappingNode {
		s.reader.Report(node, nil, "expected settings by name, got "+Describe(node), false)
		return s
	}
	s.reader.Value(nil, s.root.Node, reflect.ValueOf(&out).Elem(), nil)
	return s
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
		s.reader.Report(Find(s.root.Node, path), Under(nil, path), text, warning)
	}
}

// Problems returns all that is wrong, warnings too, in order of line.
func (s *Settings) Problems() []Problem {
	slices.SortStableFunc(s.reader.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.reader.Problems
}
