package manifests

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSize is how large a manifest file may be, as the kubelet has it.
const maxSize = 10 << 20

// Options say how manifests become pods.
type Options struct {
	NodeName   string // of this machine; pods are bound to it
	NameSuffix bool   // pods are called <name>-<node>, as the kubelet does
	Validation string // Strict (""), Warn or Ignore: unknown and duplicate fields
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
}

// found is an accepted pod with the place of its document.
type found struct {
	*Pod
	line, column int
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
	aliased int
}

// documents takes all documents of the file.
func (f *fileDecoder) documents(data []byte) {
	start := Problem{File: f.file, Line: 1, Column: 1}
	if len(data) >= maxSize {
		start.Message = "larger than 10 MiB: this is no manifest"
		f.unreadable(start)
		return
	}
	docs := documents(data)
	for _, d := range docs {
		f.document(d)
	}
	if len(docs) == 0 {
		start.Message = "the file is empty: a manifest begins with apiVersion and kind"
		f.unreadable(start)
	}
}

func (f *fileDecoder) unreadable(p Problem) {
	f.problems = append(f.problems, p)
	f.unclear = true
}

func (f *fileDecoder) document(d document) {
	if d.root == nil {
		d.err.File = f.file
		f.unreadable(d.err)
		return
	}
	f.object(object{node: d.root, line: d.line})
}

// object is one Kubernetes object of a document: its root or an item of a list.
type object struct {
	node  *yaml.Node
	line  int         // to add to the lines of nodes
	path  *field.Path // of the object in its document, nil for the root
	depth int         // of lists around it
	kind  string      // of an object that need not say its kind
}

// problem places a problem in the object.
func (f *fileDecoder) problem(o object, name, message string) Problem {
	n := find(o.node, name)
	p := o.path
	if name != "" {
		p = p.Child(name)
	}
	return Problem{File: f.file, Line: n.Line + o.line, Column: n.Column, Field: pathText(p), Message: message}
}

// object takes an object by its kind.
func (f *fileDecoder) object(o object) {
	if o.node = follow(o.node); o.node.Kind != yaml.MappingNode {
		f.unreadable(f.problem(o, "", "expected a Pod, got "+describe(o.node)))
		return
	}
	kind, version := text(o.node, "kind"), text(o.node, "apiVersion")
	if kind == "" && version == "" && o.kind != "" {
		kind, version = o.kind, "v1"
	}
	switch {
	case kind == "":
		f.wrongKind(o, f.problem(o, "kind", `the kind is missing: write "kind: Pod"`))
	case version == "":
		f.wrongKind(o, f.problem(o, "apiVersion", `the apiVersion is missing: write "apiVersion: v1"`))
	case version != "v1":
		f.wrongKind(o, f.problem(o, "apiVersion", fmt.Sprintf("%s %s is not a static pod: only apiVersion v1, kind Pod, PodList or List can run here", clip(version), clip(kind))))
	case kind == "Pod":
		f.pod(o)
	case kind == "PodList":
		f.list(o, "Pod")
	case kind == "List":
		f.list(o, "")
	case kind == "ConfigMap", kind == "Secret":
		f.problems = append(f.problems, f.problem(o, "kind", kind+" is not served yet"))
	default:
		f.wrongKind(o, f.problem(o, "kind", fmt.Sprintf("%s is not a static pod: only kind Pod, PodList or List can run here", clip(kind))))
	}
}

// wrongKind refuses an object that is no pod, but may have been one before a
// slip of the pen.
func (f *fileDecoder) wrongKind(o object, p Problem) {
	f.refuse(o, &p)
	f.problems = append(f.problems, p)
}

// refuse notes which pod cannot be had, for the Source to hold its last good
// version, and names it in the problems.
func (f *fileDecoder) refuse(o object, problems ...*Problem) {
	pod := &v1.Pod{}
	pod.Name, pod.Namespace = text(o.node, "metadata", "name"), text(o.node, "metadata", "namespace")
	if pod.Name == "" || validateName(pod.Name) != nil {
		f.unclear = true
		return
	}
	setName(pod, f.options)
	f.refused = append(f.refused, KeyOf(pod))
	for _, p := range problems {
		p.Pod = KeyOf(pod).String()
	}
}

// text returns the string below the given names, "" if there is none.
func text(n *yaml.Node, names ...string) string {
	for _, name := range names {
		if n.Kind != yaml.MappingNode {
			return ""
		}
		_, value := lookup(n, name)
		if value == nil {
			return ""
		}
		n = follow(value)
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	s, _ := scalar(n).(string)
	return s
}

// list takes the items of a PodList or List.
func (f *fileDecoder) list(o object, kind string) {
	_, items := lookup(o.node, "items")
	if items == nil {
		f.unreadable(f.problem(o, "items", "a list needs items"))
		return
	}
	items = follow(items)
	if isNull(items) {
		return
	}
	if items.Kind != yaml.SequenceNode {
		f.unreadable(f.problem(o, "items", "expected a list, got "+describe(items)))
		return
	}
	for i, item := range items.Content {
		inner := object{node: item, line: o.line, path: o.path.Child("items").Index(i), depth: o.depth + 1, kind: kind}
		// Aliases may repeat items: without a bound, lists of lists multiply.
		if f.aliased++; inner.depth > 5 || f.aliased > maxAliased {
			f.unreadable(f.problem(o, "items", "too many lists in lists"))
			return
		}
		f.object(inner)
	}
}

// pod takes a Pod.
func (f *fileDecoder) pod(o object) {
	r := &reader{file: f.file, line: o.line, validation: f.options.Validation, tables: f.tables, aliased: f.aliased}
	pod := &v1.Pod{}
	r.value(nil, o.node, reflect.ValueOf(pod).Elem(), o.path, 0)
	f.aliased = r.aliased
	accepted := accept(pod, f.file, f.options)
	for _, e := range validate(pod) {
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
	f.pods = append(f.pods, found{pod, o.node.Line + o.line, o.node.Column})
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
