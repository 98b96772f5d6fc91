package decode

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Settings is a settings file, read as strictly as a manifest, and its problems, which quote
// nothing of it: it may hold a header's value or a password. One goroutine uses it.
type Settings struct {
	reader Reader
	root   Object
}

// Fields are the fields of an object by name. The value of each is a pointer to its destination, or
// Fields if it is an object itself.
type Fields map[string]any

// ReadSettings fills the destinations in out from the only document of a file, YAML or JSON. Fields
// that are absent or null are left unchanged, as are all fields of an empty file. Problems returns
// what is wrong with the values.
func ReadSettings(file string, data []byte, out Fields) *Settings {
	s := newSettings(file, data, out.names)
	if s.read() {
		s.reader.duplicates(s.root)
		s.fill("", out, s.root.value.(map[string]any))
	}
	return s
}

// ReadPrivate fills the struct that to points to from the only document of a file, and returns the
// problems, which quote nothing of the file.
func ReadPrivate(file string, data []byte, to any) []Problem {
	s := newSettings(file, data, func() map[string]bool { return namesIn(reflect.TypeOf(to)) })
	if s.read() {
		s.reader.Read(s.root, to)
	}
	return s.Problems()
}

// newSettings returns empty settings of a file whose messages may use the known names.
func newSettings(file string, data []byte, known func() map[string]bool) *Settings {
	empty := &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	doc := &reading{root: empty, privacy: &privacy{data: data, asked: true, kept: true, known: known}}
	return &Settings{reader: Reader{File: file}, root: Object{Node: empty, value: map[string]any{}, doc: doc}}
}

// read parses the only document of the file, and reports whether it is an object.
func (s *Settings) read() bool {
	file := s.root.privacy()
	if len(file.data) >= MaxSize {
		s.reader.Report(s.root, s.root.Node, "", Fixed("larger than 10 MiB: this is no file of settings"), false)
		return false
	}
	found := false
	for d := range documents(file.data, file) {
		switch {
		case d.Err.Message != "":
			d.Err.File = s.reader.File
			s.reader.Problems = append(s.reader.Problems, d.Err)
			return false
		case found:
			s.reader.Report(d.Object(), d.Root, "", Fixed("a second document: settings are one"), false)
			return false
		}
		s.root, found = d.Object(), true
	}
	if node := Follow(s.root.Node); node.Kind != yaml.MappingNode {
		s.reader.Report(s.root, node, "", Got("expected settings by name", node), false)
		return false
	}
	return true
}

// names returns the names of the fields, with nested ones.
func (f Fields) names() map[string]bool {
	all := map[string]bool{}
	for name, to := range f {
		all[name] = true
		if inner, is := to.(Fields); is {
			maps.Copy(all, inner.names())
		} else {
			maps.Copy(all, namesIn(reflect.TypeOf(to)))
		}
	}
	return all
}

// fill stores the values of the object at a path.
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
				s.reader.fitting(s.root, at, reflect.TypeFor[struct{}](), v) // reports v unless it is an object
			}
		default:
			if v = s.reader.fitting(s.root, at, types[name], v); v != nil {
				_, _ = unmarshal(v, to) // cannot fail: the value fits
			}
		}
	}
}

// Refuse reports a problem with the value of a field, such as a.b[0] or a[key], unless the value
// could not be read, which has been reported already. The words must quote nothing of the file.
func (s *Settings) Refuse(field, words string) { s.note(field, words, false) }

// Warn reports a value that is accepted but has another effect than it seems to have. The words
// must quote nothing of the file.
func (s *Settings) Warn(field, words string) { s.note(field, words, true) }

// Problem returns a problem with a field, which is not among Problems. The words must
// quote nothing of the file.
func (s *Settings) Problem(field, words string) Problem {
	return s.root.Problem(s.reader.File, Find(s.root.Node, field), field, Fixed(words))
}

func (s *Settings) note(path, text string, warning bool) {
	if !s.reader.IsMisread(s.root, path) {
		s.reader.Report(s.root, Find(s.root.Node, path), path, Fixed(text), warning)
	}
}

// Problems returns all problems, including warnings, sorted by line.
func (s *Settings) Problems() []Problem {
	slices.SortStableFunc(s.reader.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.reader.Problems
}
