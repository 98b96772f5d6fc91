package manifests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

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
	// At returns the place of a field, such as spec.containers[0].image, else of what
	// would hold it. It keeps the file in memory.
	At func(field string) decode.Position
}

// DecodePlaced is Decode with the places of the pods' fields.
func DecodePlaced(file string, data []byte, o Options) ([]Placed, []decode.Problem) {
	f := decoded(file, data, o)
	pods := make([]Placed, len(f.pods))
	for i, p := range f.pods {
		pods[i] = Placed{p.Pod, func(field string) decode.Position { return f.place(f.objects[i], field) }}
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
	f := &fileDecoder{file: file, options: o}
	f.documents(data)
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
	objects []decode.Object // of the pods, in the same order
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
	r := &decode.Reader{File: f.file, Validation: f.options.Validation}
	pod := &v1.Pod{}
	r.Read(o, pod)
	f.options.Fill.pod(pod, func(field, name string) {
		r.Report(o, decode.Find(o.Node, field), decode.Join(o.Path, field), fmt.Sprintf("$(%s) has no value: set the environment variable %[1]s", name), false)
	})
	pinned := pod.UID != ""
	given := validate.Given{RuntimeClasses: f.options.RuntimeClasses, NodeName: pod.Spec.NodeName,
		Misread: func(field string) bool { return r.IsMisread(o, field) }}
	accepted := accept(pod, f.file, f.options)
	for _, e := range validate.Pod(pod, given) {
		r.Report(o, decode.Find(o.Node, e.Field), decode.Join(o.Path, e.Field), e.Text, e.Warning)
	}
	problems := r.Problems
	if slices.ContainsFunc(problems, func(p decode.Problem) bool { return !p.Warning }) {
		named := make([]*decode.Problem, len(problems))
		for i := range problems {
			named[i] = &problems[i]
		}
		f.refuse(o, named...)
		f.problems = append(f.problems, problems...)
		return
	}
	f.add(o, found{Pod: accepted, pinned: pinned}, problems)
}

// add takes an accepted pod unless the file gave it before.
func (f *fileDecoder) add(o decode.Object, pod found, warnings []decode.Problem) {
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
	pod.line, pod.column = o.Node.Line+o.Line, o.Node.Column
	pod.order, pod.uid = f.orderOf(o, pod.Pod), f.place(o, "metadata.uid")
	f.pods, f.objects = append(f.pods, pod), append(f.objects, o)
}

// orderOf returns where the pod says what it waits for.
func (f *fileDecoder) orderOf(o decode.Object, pod *Pod) decode.Position {
	if _, ok := pod.Annotations[decode.StartAfter]; !ok {
		return decode.Position{}
	}
	return f.place(o, decode.StartAfterField)
}

// place returns where a field of an object is.
func (f *fileDecoder) place(o decode.Object, path string) decode.Position {
	n := decode.Find(o.Node, path)
	return decode.Position{Line: n.Line + o.Line, Column: n.Column}
}
