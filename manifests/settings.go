package manifests

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Settings is a file of settings that was read as strictly as a manifest, and
// what is wrong with it. One goroutine uses it.
type Settings struct {
	reader reader
	root   object
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
	s := &Settings{reader: reader{file: file, tables: map[reflect.Type]fieldTable{}}, root: object{node: empty}}
	if len(data) >= maxSize {
		s.reader.report(empty, nil, "larger than 10 MiB: this is no file of settings", false)
		return s
	}
	for d := range documents(data) {
		switch {
		case d.root == nil:
			d.err.File = file
			s.reader.problems = append(s.reader.problems, d.err)
			return s
		case s.root.node != empty:
			s.reader.line = d.line
			s.reader.report(d.root, nil, "a second document: settings are one", false)
			return s
		}
		s.root, s.reader.line = object{node: d.root, line: d.line}, d.line
	}
	if node := follow(s.root.node); node.Kind != yaml.MappingNode {
		s.reader.report(node, nil, "expected settings by name, got "+describe(node), false)
		return s
	}
	s.reader.value(nil, s.root.node, reflect.ValueOf(&out).Elem(), nil, 0)
	return s
}

// Refuse notes what is wrong with the value of a field, such as a.b[0] or
// a[key]. Of a value that could not be read that has been said already.
func (s *Settings) Refuse(field, format string, args ...any) {
	s.note(field, fmt.Sprintf(format, args...), false)
}

// Warn notes what is accepted but not what it seems.
func (s *Settings) Warn(field, format string, args ...any) {
	s.note(field, fmt.Sprintf(format, args...), true)
}

func (s *Settings) note(path, text string, warning bool) {
	if !s.reader.isMisread(s.root, path) {
		s.reader.report(find(s.root.node, path), under(nil, path), text, warning)
	}
}

// Problems returns all that is wrong, warnings too, in order of line.
func (s *Settings) Problems() []Problem {
	slices.SortStableFunc(s.reader.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.reader.problems
}
