package manifests

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
		if inner.depth > 5 {
			f.unreadable(f.problem(o, "items", "too many lists in lists"))
			return
		}
		if f.object(inner); f.hopeless() {
			return
		}
	}
}
