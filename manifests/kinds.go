package manifests

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests/decode"
)

// problem places a problem in the object.
func (f *fileDecoder) problem(o decode.Object, name, message string) decode.Problem {
	n := decode.Find(o.Node, name)
	return decode.Problem{File: f.file, Line: n.Line + o.Line, Column: n.Column, Field: decode.Join(o.Path, name), Message: message}
}

// object takes an object by its kind.
func (f *fileDecoder) object(o decode.Object) {
	if o.Node = decode.Follow(o.Node); o.Node.Kind != yaml.MappingNode {
		f.unreadable(f.problem(o, "", "expected a Pod, got "+decode.Describe(o.Node)))
		return
	}
	kind, version := decode.Text(o.Node, "kind"), decode.Text(o.Node, "apiVersion")
	if kind == "" && version == "" && o.Kind != "" {
		kind, version = o.Kind, "v1"
	}
	switch {
	case kind == "":
		f.wrongKind(o, f.problem(o, "kind", `the kind is missing: write "kind: Pod"`))
	case version == "":
		f.wrongKind(o, f.problem(o, "apiVersion", `the apiVersion is missing: write "apiVersion: v1"`))
	case version != "v1":
		f.wrongKind(o, f.problem(o, "apiVersion", fmt.Sprintf("%s %s is not a static pod: only apiVersion v1, kind Pod, PodList or List can run here", decode.Clip(version), decode.Clip(kind))))
	case kind == "Pod":
		f.pod(o)
	case kind == "PodList":
		f.list(o, "Pod")
	case kind == "List":
		f.list(o, "")
	case kind == "ConfigMap", kind == "Secret":
		f.problems = append(f.problems, f.problem(o, "kind", kind+" is not served yet"))
	default:
		f.wrongKind(o, f.problem(o, "kind", fmt.Sprintf("%s is not a static pod: only kind Pod, PodList or List can run here", decode.Clip(kind))))
	}
}

// wrongKind refuses an object that is no pod, but may have been one before a
// slip of the pen.
func (f *fileDecoder) wrongKind(o decode.Object, p decode.Problem) {
	f.refuse(o, &p)
	f.problems = append(f.problems, p)
}

// refuse records which pod is invalid, for the Source to hold its last good
// version, and names it in the problems.
func (f *fileDecoder) refuse(o decode.Object, problems ...*decode.Problem) {
	pod := &v1.Pod{}
	pod.Name, pod.Namespace = decode.Text(o.Node, "metadata", "name"), decode.Text(o.Node, "metadata", "namespace")
	if pod.Name == "" || decode.ValidateName(pod.Name) != nil ||
		pod.Namespace != "" && validation.IsDNS1123Label(pod.Namespace) != nil {
		f.unclear = true
		return
	}
	setName(pod, f.options)
	f.refused = append(f.refused, KeyOf(pod))
	for _, p := range problems {
		p.Pod = KeyOf(pod).String()
	}
}

// list takes the items of a PodList or List.
func (f *fileDecoder) list(o decode.Object, kind string) {
	_, items := decode.Lookup(o.Node, "items")
	if items == nil {
		f.unreadable(f.problem(o, "items", "a list needs items"))
		return
	}
	items = decode.Follow(items)
	if decode.IsNull(items) {
		return
	}
	if items.Kind != yaml.SequenceNode {
		f.unreadable(f.problem(o, "items", "expected a list, got "+decode.Describe(items)))
		return
	}
	for _, inner := range o.Items(items, kind) {
		if inner.Depth > 5 {
			f.unreadable(f.problem(o, "items", "too many lists in lists"))
			return
		}
		if f.object(inner); f.tooManyProblems() {
			return
		}
	}
}
