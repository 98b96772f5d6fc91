package documents

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
	"monopod/manifests/validate"
)

// Options control how manifests become pods.
type Options struct {
	NodeName   string // of this machine; pods are bound to it
	NameSuffix bool   // pods are named <name>-<node>, as by the kubelet
	Validation string // Strict (""), Warn or Ignore: unknown and duplicate fields
	// RuntimeClasses are the classes that a pod may name; their values are not used here.
	RuntimeClasses map[string]string
	Fill           *Fill        // nil: manifests are used unchanged
	Claims         map[Key]bool // PersistentVolumeClaims that other files give
	// IsAccepted reports whether a version was accepted before, by this monopod or a former one: a
	// check that a later release added is only a warning for it. nil: none was.
	IsAccepted func(*Pod) bool

	URL string // the URL that gives the manifests; "": a file does
}

// Decode reads all documents of one file. It returns the accepted pods and all problems, sorted by
// line. A problem that is no Warning keeps its pod from being accepted, but not the other pods of
// the file.
func Decode(file string, data []byte, o Options) ([]*Pod, []decode.Problem) {
	c := Read(file, data, o)
	pods := make([]*Pod, len(c.Pods))
	for i, p := range c.Pods {
		pods[i] = p.Pod
	}
	return pods, c.Problems
}

// Placed is an accepted pod that knows its position in its file.
type Placed struct {
	*Pod
	// At returns the position of a pod's field, such as spec.containers[0].image, or of its nearest
	// parent in the manifest. It keeps the file in memory.
	At func(field string) Place
}

// Place is where a file sets a field of a pod.
type Place struct {
	decode.Position
	Field string // of the object that gives the pod, such as spec.template.spec.containers[0].image
}

// DecodePlaced is Decode with the positions of the pods' fields. It also returns the ConfigMaps and
// Secrets.
func DecodePlaced(file string, data []byte, o Options) ([]Placed, []FoundObject, []decode.Problem) {
	f := decoded(file, data, o)
	pods := make([]Placed, len(f.Pods))
	for i, p := range f.Pods {
		pods[i] = Placed{p.Pod, func(field string) Place {
			return Place{f.origins[i].place(field), f.origins[i].at(field)}
		}}
	}
	return pods, f.Objects, f.Problems
}

// Content is the decoded content of one file.
type Content struct {
	Pods     []Found
	Problems []decode.Problem
	// Refused are pods that the file names but whose documents are invalid.
	Refused []Key
	// Objects are the ConfigMaps and Secrets, RefusedObjects those that the file names but whose
	// documents are invalid.
	Objects        []FoundObject
	RefusedObjects []ObjectKey
	// Claims are the PersistentVolumeClaims that the file gives, Lacking the pods that are refused
	// only because a claim is missing, and Unnamed the claims that exist without a document: see
	// Given.
	Claims  []Key
	Lacking []Lacking
	Unnamed []Unnamed
	// Unclear is set if a document is so wrong that its pod is not known.
	Unclear bool
	// Faults are panics of this package while decoding the file, each with its stack.
	Faults []string
}

// Found is an accepted pod with the position of its document.
type Found struct {
	*Pod
	Line, Column int
	Order        decode.Position // of its StartAfter annotation, if it has one
	UIDAt        decode.Position // of its uid, or of the nearest parent in the manifest
	Pinned       bool            // the manifest sets the uid
}

// Read decodes a file as Decode does and returns its whole Content, for a Source.
func Read(file string, data []byte, o Options) Content { return decoded(file, data, o).Content }

// decoded returns a decoder that has read the whole file.
func decoded(file string, data []byte, o Options) *fileDecoder {
	if abs, err := filepath.Abs(file); err == nil && file != "" && file != "-" && o.URL == "" {
		file = abs
	}
	o.NodeName = strings.ToLower(strings.TrimSpace(o.NodeName))
	f := &fileDecoder{file: file, options: o, claims: map[Key]bool{}}
	f.documents(data)
	f.checkClaims()
	for c := range f.claims {
		f.Claims = append(f.Claims, c)
	}
	slices.SortStableFunc(f.Problems, func(a, b decode.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}

// fileDecoder collects the content of one file.
type fileDecoder struct {
	Content
	file    string
	options Options
	origins []origin // of the pods, in the same order
	claims  map[Key]bool

	counted  int // problems that tooManyProblems has seen
	errors   int // among them
	warnings int // likewise, with those that are left out
	isCut    bool
}

// origin is an object that gives a pod.
type origin struct {
	decode.Object
	at   func(field string) string // the object's field that sets a field of the pod
	idle bool                      // the pod must not run
	hook bool                      // the pod is run by helm
}

// place returns where the object sets a field of the pod.
func (o origin) place(field string) decode.Position {
	n := o.node(field)
	return decode.Position{Line: n.Line + o.Line, Column: n.Column}
}

func (o origin) node(field string) *yaml.Node { return decode.Find(o.Node, o.at(field)) }

// report reports a problem with a field of the pod.
func (o origin) report(r *decode.Reader, field string, m decode.Message, warning bool) {
	r.Report(o.Object, o.node(field), decode.Join(o.Path, o.at(field)), m, warning)
}

func (f *fileDecoder) reader() *decode.Reader {
	return &decode.Reader{File: f.file, Validation: f.options.Validation}
}

// documents decodes all documents of the file.
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
		f.contained(d)
		if f.tooManyProblems() {
			return
		}
	}
	if empty {
		start.Message = "the file is empty: a manifest begins with apiVersion and kind"
		f.unreadable(start)
	}
}

// mostProblems is how many errors a file may have before its rest is skipped, and how many warnings are
// reported.
const mostProblems = 500

// tooManyProblems reports whether the rest of the file is skipped, for its errors: warnings skip nothing.
// The first time, it adds a problem about that.
func (f *fileDecoder) tooManyProblems() bool {
	f.countProblems()
	if f.errors < mostProblems {
		return false
	}
	if !f.isCut {
		f.isCut = true
		f.unreadable(decode.Problem{File: f.file, Line: f.Problems[len(f.Problems)-1].Line, Column: 1, Message: "too many problems: the rest of the file is not read"})
	}
	return true
}

// countProblems counts the problems that are new, and leaves out the warnings that are too many.
func (f *fileDecoder) countProblems() {
	all := f.Problems[:f.counted]
	for _, p := range f.Problems[f.counted:] {
		if !p.Warning {
			f.errors++
			all = append(all, p)
			continue
		}
		f.warnings++
		if f.warnings == mostProblems {
			p.Message = "too many warnings in this file, the rest is left out: " + p.Message
		}
		if f.warnings <= mostProblems {
			all = append(all, p)
		}
	}
	f.Problems, f.counted = all, len(all)
}

func (f *fileDecoder) unreadable(p decode.Problem) {
	f.Problems = append(f.Problems, p)
	f.Unclear = true
}

// contained decodes a document. A panic becomes a problem of the file, whose last good versions
// then keep running.
func (f *fileDecoder) contained(d decode.Document) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		const wrong = "monopod itself went wrong over this document, please report it"
		root := &yaml.Node{Line: 1, Column: 1}
		if d.Root != nil {
			root = d.Root
		}
		p := d.Object().Problem(f.file, root, "", decode.Message{Full: fmt.Sprintf("%s with the document: panic: %v", wrong, v), Plain: wrong})
		f.Faults = append(f.Faults, fmt.Sprintf("%s\n%s", p.Message, debug.Stack()))
		f.unreadable(p)
	}()
	f.document(d)
}

func (f *fileDecoder) document(d decode.Document) {
	if d.Err.Message != "" {
		d.Err.File = f.file
		f.refuse(d.Object(), &d.Err)
		f.Problems = append(f.Problems, d.Err)
		return
	}
	f.object(d.Object())
}

// pod decodes a Pod.
func (f *fileDecoder) pod(o decode.Object) {
	r, pod := f.reader(), &v1.Pod{}
	r.Read(o, pod)
	f.take(origin{Object: o, at: func(field string) string { return field }, hook: isHelms(o)}, r, pod)
}

// take completes and validates a decoded pod, and adds it unless it has an error.
func (f *fileDecoder) take(o origin, r *decode.Reader, pod *v1.Pod) {
	f.options.Fill.pod(pod, func(field, name string) {
		o.report(r, field, decode.Fixed(fmt.Sprintf("$(%s) has no value: set the environment variable %[1]s", name)), false)
	})
	pinned, isCopy := pod.UID != "", pod.Annotations[annotations.TagImages] != ""
	given := validate.Given{RuntimeClasses: f.options.RuntimeClasses, NodeName: pod.Spec.NodeName,
		Misread: func(field string) bool { return r.IsMisread(o.Object, o.at(field)) }}
	accepted := accept(pod, f.file, f.options)
	if o.hook && !f.wasAccepted(accepted) {
		f.note(o.Object, helmHook, decode.Text(o.Node, "kind")+hookIsSkipped)
		return
	}
	for _, e := range validate.Pod(pod, given) {
		spared := e.Lately && f.wasAccepted(accepted)
		o.report(r, e.Field, e.Message, e.Warning || spared)
	}
	if isCopy {
		o.report(r, "metadata.annotations["+annotations.TagImages+"]", decode.Fixed("has no effect in a manifest: monopod itself sets it on served objects"), true)
	}
	problems := r.Problems
	switch {
	case slices.ContainsFunc(problems, func(p decode.Problem) bool { return !p.Warning }):
		named := make([]*decode.Problem, len(problems))
		for i := range problems {
			named[i] = &problems[i]
		}
		f.refuse(o.Object, named...)
		f.Problems = append(f.Problems, problems...)
	case o.idle:
		f.Problems = append(f.Problems, problems...)
	default:
		f.add(o, Found{Pod: accepted, Pinned: pinned}, problems)
	}
}

// wasAccepted reports whether a version was accepted before.
func (f *fileDecoder) wasAccepted(p *Pod) bool {
	return f.options.IsAccepted != nil && f.options.IsAccepted(p)
}

// givenTwice is the message for a duplicate of what the file gives on another line.
func givenTwice(what string, line int) decode.Message {
	const again = "%s is given twice: line %d of this file has it already"
	return decode.Message{Full: fmt.Sprintf(again, what, line), Plain: fmt.Sprintf(again, "it", line)}
}

// add adds an accepted pod unless the file has given it already.
func (f *fileDecoder) add(o origin, pod Found, warnings []decode.Problem) {
	key := pod.Key()
	for _, other := range f.Pods {
		if other.Key() == key {
			p := f.problem(o.Object, "metadata.name", givenTwice(key.String(), other.Line))
			p.Pod = key.String()
			f.Problems = append(f.Problems, p)
			return
		}
	}
	for _, w := range warnings {
		w.Pod = key.String()
		f.Problems = append(f.Problems, w)
	}
	pod.Line, pod.Column = o.Node.Line+o.Line, o.Node.Column
	pod.UIDAt = o.place("metadata.uid")
	if _, ok := pod.Annotations[annotations.StartAfter]; ok {
		pod.Order = o.place(annotations.StartAfterField)
	}
	f.Pods, f.origins = append(f.Pods, pod), append(f.origins, o)
}
