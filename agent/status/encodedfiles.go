package status

import (
	"bytes"
	"reflect"
	"slices"
)

// encodedFiles encodes reports of manifests. It caches the encoding of each file: of a thousand
// one changes. The zero value is empty.
type encodedFiles struct {
	files map[string]*encodedFile // by path
	all   []byte                  // room for a report
	rest  encoder                 // of all but the files
	each  encoder                 // of a file
}

// encodedFile is the encoding of one file in a report.
type encodedFile struct {
	of   File
	text []byte
}

// noFiles is the place of the files in a report that has none. Before it there is only the
// folder's name, in which quotes are escaped.
const noFiles = `"files": []`

// encode returns what an encoder returns for a report. It is valid until the next call.
func (e *encodedFiles) encode(m Manifests) ([]byte, error) {
	files := m.Files
	m.Files = []File{}
	rest, err := e.rest.encodeAt("", m)
	if err != nil || len(files) == 0 {
		return rest, err
	}
	before, after, _ := bytes.Cut(rest, []byte(noFiles))
	if len(e.files) > 2*len(files) {
		clear(e.files)
	}
	e.all = append(append(e.all[:0], before...), `"files": [`...)
	for k := range files {
		text, err := e.file(&files[k])
		if err != nil {
			return nil, err
		}
		if k > 0 {
			e.all = append(e.all, ',')
		}
		e.all = append(append(e.all, "\n    "...), text...)
	}
	e.all = append(append(e.all, "\n  ]"...), after...)
	return e.all, nil
}

// file returns the encoding of one file.
func (e *encodedFiles) file(f *File) ([]byte, error) {
	known := e.files[f.Path]
	if known != nil && known.of.same(f) {
		return known.text, nil
	}
	text, err := e.each.encodeAt("    ", f)
	if err != nil {
		return nil, err
	}
	if e.files == nil {
		e.files = map[string]*encodedFile{}
	}
	text = bytes.Clone(bytes.TrimSuffix(text, []byte("\n")))
	e.files[f.Path] = &encodedFile{*f, text}
	return text, nil
}

// same reports whether two reports of a file are equal.
func (f *File) same(o *File) bool {
	return f.Path == o.Path && f.Held == o.Held && f.MaskedBy == o.MaskedBy && f.State == o.State && f.Since.Equal(o.Since) && f.SHA256 == o.SHA256 &&
		slices.Equal(f.Pods, o.Pods) && slices.Equal(f.Problems, o.Problems) && slices.Equal(f.Versions, o.Versions) &&
		slices.EqualFunc(f.Objects, o.Objects, func(a, b Object) bool { return reflect.DeepEqual(a, b) })
}
