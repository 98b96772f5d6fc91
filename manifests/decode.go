package manifests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options say how manifests become pods.
type Options struct {
	NodeName   string // of this machine; pods are bound to it
	NameSuffix bool   // pods are called <name>-<node>, as the kubelet does
	Validation string // Strict (""), Warn or Ignore: unknown and duplicate fields
	// RuntimeClasses are the classes a pod may name; their values do not matter here.
	RuntimeClasses map[string]string
}

// Decode reads all documents of one file. It returns the pods that are
// accepted and everything that is wrong, in order of line. A pod with a
// problem that is no Warning is not among the pods; the other pods of its
// file are.
func Decode(file string, data []byte, o Options) ([]*Pod, []Problem) {
	c := decodeFile(file, data, o)
	pods := make([]*Pod, len(c.pods))
	for i, p := range c.pods {
		pods[i] = p.Pod
	}
	return pods, c.problems
}

// content is what one file says.
type content struct {
	pods     []found
	problems []Problem
	// refused are pods that the file names but whose documents are wrong.
	refused []Key
	// unclear is set when a document is so wrong that its pod is not known.
	unclear bool
	// faults are panics of this package over the file, each with its stack.
	faults []string
}

// found is an accepted pod with the place of its document.
type found struct {
	*Pod
	line, column int
	order        Position // of its StartAfter annotation, if it has one
	uid          Position // of its uid, else of what would hold it
}

// decodeFile is Decode with what a Source needs to know besides.
func decodeFile(file string, data []byte, o Options) content {
	if abs, err := filepath.Abs(file); err == nil && file != "" && file != "-" {
		file = abs
	}
	o.NodeName = strings.ToLower(strings.TrimSpace(o.NodeName))
	f := &fileDecoder{file: file, options: o, tables: map[reflect.Type]fieldTable{}}
	f.documents(data)
	slices.SortStableFunc(f.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f.content
}

// fileDecoder gathers the content of one file.
type fileDecoder struct {
	content
	file    string
	options Options
	tables  map[reflect.Type]fieldTable
}

// documents takes all documents of the file.
func (f *fileDecoder) documents(data []byte) {
	start := Problem{File: f.file, Line: 1, Column: 1}
	if len(data) >= maxSize {
		start.Message = "larger than 10 MiB: this is no manifest"
		f.unreadable(start)
		return
	}
	empty := true
	for d := range documents(data) {
		empty = false
		if f.contained(d); f.hopeless() {
			return
		}
	}
	if empty {
		start.Message = "the file is empty: a manifest begins with apiVersion and kind"
		f.unreadable(start)
	}
}

// hopeless tells if so much is wrong that the rest of the file is not worth
// reading. It says so the first time.
func (f *fileDecoder) hopeless() bool {
	const most = 500
	if len(f.problems) < most {
		return false
	}
	if !f.unclear || f.problems[len(f.problems)-1].Message != tooMany {
		f.unreadable(Problem{File: f.file, Line: f.problems[len(f.problems)-1].Line, Column: 1, Message: tooMany})
	}
	return true
}

const tooMany = "too many problems: the rest of the file is not read"

func (f *fileDecoder) unreadable(p Problem) {
	f.problems = append(f.problems, p)
	f.unclear = true
}

// contained takes a document. A panic over it is a problem of its file, whose
// last good versions then run on.
func (f *fileDecoder) contained(d document) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		f.faults = append(f.faults, fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
		p := Problem{File: f.file, Line: d.line + 1, Column: 1, Message: fmt.Sprintf(
			"monopod itself went wrong over this document, please report it with the document: panic: %v", v)}
		if d.root != nil {
			p.Line, p.Column = d.line+d.root.Line, d.root.Column
		}
		f.unreadable(p)
	}()
	f.document(d)
}

func (f *fileDecoder) document(d document) {
	if d.root == nil {
		d.err.File = f.file
		f.unreadable(d.err)
		return
	}
	f.object(object{node: d.root, line: d.line})
}

// pod takes a Pod.
func (f *fileDecoder) pod(o object) {
	r := &reader{file: f.file, line: o.line, validation: f.options.Validation, tables: f.tables}
	pod := &v1.Pod{}
	r.value(nil, o.node, reflect.ValueOf(pod).Elem(), o.path)
	accepted := accept(pod, f.file, f.options)
	for _, e := range validate(pod, f.options) {
		if !r.isMisread(o, e.Field) {
			n := find(o.node, e.Field)
			r.report(n, under(o.path, e.Field), e.text, e.warning)
		}
	}
	problems := r.problems
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		named := make([]*Problem, len(problems))
		for i := range problems {
			named[i] = &problems[i]
		}
		f.refuse(o, named...)
		f.problems = append(f.problems, problems...)
		return
	}
	f.add(o, accepted, problems)
}

// add takes an accepted pod unless the file gave it before.
func (f *fileDecoder) add(o object, pod *Pod, warnings []Problem) {
	key := pod.Key()
	for _, other := range f.pods {
		if other.Key() == key {
			p := f.problem(o, "metadata.name", fmt.Sprintf("%s is given twice: line %d of this file has it already", key, other.line))
			p.Pod = key.String()
			f.problems = append(f.problems, p)
			return
		}
	}
	for _, w := range warnings {
		w.Pod = key.String()
		f.problems = append(f.problems, w)
	}
	f.pods = append(f.pods, found{pod, o.node.Line + o.line, o.node.Column, f.orderOf(o, pod), f.place(o, "metadata.uid")})
}

// orderOf returns where the pod says what it waits for.
func (f *fileDecoder) orderOf(o object, pod *Pod) Position {
	if _, ok := pod.Annotations[StartAfter]; !ok {
		return Position{}
	}
	return f.place(o, StartAfterField)
}

// place returns where a field of an object is.
func (f *fileDecoder) place(o object, path string) Position {
	n := find(o.node, path)
	return Position{n.Line + o.line, n.Column}
}

// isMisread tells if a field was not read, so that what validation says of it
// or of what is in it means nothing.
func (r *reader) isMisread(o object, path string) bool {
	path = pathText(under(o.path, path))
	return slices.ContainsFunc(r.misread, func(m string) bool {
		return m == "" || path == m || strings.HasPrefix(path, m+".") || strings.HasPrefix(path, m+"[")
	})
}

// under puts a path that is relative to an object behind the object's own.
func under(base *field.Path, path string) *field.Path {
	if path == "" {
		return base
	}
	return base.Child(path)
}
