package manifests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
	"monopod/manifests/validate"
)

// Options say how manifests become pods.
type Options struct {
	NodeName   string // of this machine; pods are bound to it
	NameSuffix bool   // pods are called <name>-<node>, as the kubelet does
	Validation string // Strict (""), Warn or Ignore: unknown and duplicate fields
	// RuntimeClasses are the classes a pod may name; their values do not matter here.
	RuntimeClasses map[string]string
	Fill           *Fill // nil: manifests are taken as they are

	url string // that gives the manifests; "": a file does
}

// Decode reads all documents of one file. It returns the pods that are
// accepted and everything that is wrong, in order of line. A pod with a
// problem that is no Warning is not among the pods; the other pods of its
// file are.
func Decode(file string, data []byte, o Options) ([]*Pod, []decode.Problem) {
	c := decodeFile(file, data, o)
	pods := make([]*Pod, len(c.pods))
	for i, p := range c.pods {
		pods[i] = p.Pod
	}
	return pods, c.problems
}

// Placed is an accepted pod that knows where it stands in its file.
type Placed struct {
	*Pod
	// At returns the place of a pod's field, such as spec.containers[0].image, else of
	// what would hold it. It keeps the file in memory.
	At func(field string) Place
}

// Place is where a file says a field of a pod.
type Place struct {
	decode.Position
	Field string // of the object that gives the pod, such as spec.template.spec.containers[0].image
}

// DecodePlaced is Decode with the places of the pods' fields.
func DecodePlaced(file string, data []byte, o Options) ([]Placed, []decode.Problem) {
	f := decoded(file, data, o)
	pods := make([]Placed, len(f.pods))
	for i, p := range f.pods {
		pods[i] = Placed{p.Pod, func(field string) Place {
			return Place{f.origins[i].place(field), f.origins[i].at(field)}
		}}
	}
	return pods, f.problems
}

// content is what one file says.
type content struct {
	pods     []found
	problems []decode.Problem
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
	order        decode.Position // of its StartAfter annotation, if it has one
	uid          decode.Position // of its uid, else of what would hold it
	pinned       bool            // the manifest says the uid
}

// decodeFile is Decode with more for a Source.
func decodeFile(file string, data []byte, o Options) content { return decoded(file, data, o).content }

// decoded returns the decoder of a file that has read all of it.
func decoded(file string, data []byte, o Options) *fileDecoder {
	if abs, err := filepath.Abs(file); err == nil && file != "" && file != "-" && o.url == "" {
		file = abs
	}
	o.NodeName = strings.ToLower(strings.TrimSpace(o.NodeName))
	f := &fileDecoder{file: file, options: o, claims: map[Key]bool{}}
	f.documents(data)
	f.checkClaims()
	slices.SortStableFunc(f.problems, func(a, b decode.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}

// fileDecoder gathers the content of one file.
type fileDecoder struct {
	content
	file    string
	options Options
	origins []origin // of the pods, in the same order
	claims  map[Key]bool
}

// origin is an object that gives a pod.
type origin struct {
	decode.Object
	at   func(field string) string // the object's field that says a field of the pod
	idle bool                      // the pod is not to run
}

// place returns where the object says a field of the pod.
func (o origin) place(field string) decode.Position {
	n := o.node(field)
	return decode.Position{Line: n.Line + o.Line, Column: n.Column}
}

func (o origin) node(field string) *yaml.Node { return decode.Find(o.Node, o.at(field)) }

// report reports a problem with a field of the pod.
func (o origin) report(r *decode.Reader, field, text string, warning bool) {
	r.Report(o.Object, o.node(field), decode.Join(o.Path, o.at(field)), text, warning)
}

func (f *fileDecoder) reader() *decode.Reader {
	return &decode.Reader{File: f.file, Validation: f.options.Validation}
}

// documents takes all documents of the file.
func (f *fileDecoder) documents(data []byte) {
	start := decode.Problem{File: f.file, Line: 1, Column: 1}
	if len(data) >= decode.MaxSize {
		start.Message = "larger than 10 MiB: this is no manifest"
		f.unreadable(start)
		return
	}
	empty := true
	for d := range decode.Documents(data) {
		empty = false
		if f.contained(d); f.tooManyProblems() {
			return
		}
	}
	if empty {
		start.Message = "the file is empty: a manifest begins with apiVersion and kind"
		f.unreadable(start)
	}
}

// tooManyProblems reports whether the rest of the file is not worth reading. It
// adds a problem that says so the first time.
func (f *fileDecoder) tooManyProblems() bool {
	const most = 500
	if len(f.problems) < most {
		return false
	}
	if !f.unclear || f.problems[len(f.problems)-1].Message != tooMany {
		f.unreadable(decode.Problem{File: f.file, Line: f.problems[len(f.problems)-1].Line, Column: 1, Message: tooMany})
	}
	return true
}

const tooMany = "too many problems: the rest of the file is not read"

func (f *fileDecoder) unreadable(p decode.Problem) {
	f.problems = append(f.problems, p)
	f.unclear = true
}

// contained takes a document. A panic over it is a problem of its file, whose
// last good versions then run on.
func (f *fileDecoder) contained(d decode.Document) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		f.faults = append(f.faults, fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
		p := decode.Problem{File: f.file, Line: d.Line + 1, Column: 1, Message: fmt.Sprintf(
			"monopod itself went wrong over this document, please report it with the document: panic: %v", v)}
		if d.Root != nil {
			p.Line, p.Column = d.Line+d.Root.Line, d.Root.Column
		}
		f.unreadable(p)
	}()
	f.document(d)
}

func (f *fileDecoder) document(d decode.Document) {
	if d.Err.Message != "" {
		d.Err.File = f.file
		f.refuse(d.Object(), &d.Err)
		f.problems = append(f.problems, d.Err)
		return
	}
	f.object(d.Object())
}

// pod takes a Pod.
func (f *fileDecoder) pod(o decode.Object) {
	r, pod := f.reader(), &v1.Pod{}
	r.Read(o, pod)
	f.take(origin{Object: o, at: func(field string) string { return field }}, r, pod)
}

// take completes and checks a pod that was read, and takes it unless something is wrong.
func (f *fileDecoder) take(o origin, r *decode.Reader, pod *v1.Pod) {
	f.options.Fill.pod(pod, func(field, name string) {
		o.report(r, field, fmt.Sprintf("$(%s) has no value: set the environment variable %[1]s", name), false)
	})
	pinned := pod.UID != ""
	given := validate.Given{RuntimeClasses: f.options.RuntimeClasses, NodeName: pod.Spec.NodeName,
		Misread: func(field string) bool { return r.IsMisread(o.Object, o.at(field)) }}
	accepted := accept(pod, f.file, f.options)
	for _, e := range validate.Pod(pod, given) {
		o.report(r, e.Field, e.Text, e.Warning)
	}
	problems := r.Problems
	switch {
	case slices.ContainsFunc(problems, func(p decode.Problem) bool { return !p.Warning }):
		named := make([]*decode.Problem, len(problems))
		for i := range problems {
			named[i] = &problems[i]
		}
		f.refuse(o.Object, named...)
		f.problems = append(f.problems, problems...)
	case o.idle:
		f.problems = append(f.problems, problems...)
	default:
		f.add(o, found{Pod: accepted, pinned: pinned}, problems)
	}
}

// add takes an accepted pod unless the file gave it before.
func (f *fileDecoder) add(o origin, pod found, warnings []decode.Problem) {
	key := pod.Key()
	for _, other := range f.pods {
		if other.Key() == key {
			p := f.problem(o.Object, "metadata.name", fmt.Sprintf("%s is given twice: line %d of this file has it already", key, other.line))
			p.Pod = key.String()
			f.problems = append(f.problems, p)
			return
		}
	}
	for _, w := range warnings {
		w.Pod = key.String()
		f.problems = append(f.problems, w)
	}
	pod.line, pod.column = o.Node.Line+o.Line, o.Node.Column
	pod.uid = o.place("metadata.uid")
	if _, ok := pod.Annotations[decode.StartAfter]; ok {
		pod.order = o.place(decode.StartAfterField)
	}
	f.pods, f.origins = append(f.pods, pod), append(f.origins, o)
}
