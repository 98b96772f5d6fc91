package decode

import (
	"maps"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Object is one Kubernetes object of a document: its root or an item of a list.
type Object struct {
	Node  *yaml.Node
	Line  int    // to add to the lines of nodes
	Path  string // of the object in its document, "" for the root
	Depth int    // number of lists around it
	Kind  string // the kind if the object may leave it out
	value any    // its content
	doc   *reading
}

// Object returns the document's root.
func (d Document) Object() Object {
	return Object{Node: d.Root, Line: d.Line, value: d.says.value, doc: &d.says}
}

// Items returns the items of an object's list, of the given kind unless they set one.
func (o Object) Items(list *yaml.Node, kind string) []Object {
	values, _ := o.value.(map[string]any)["items"].([]any)
	items := make([]Object, len(values))
	for i, v := range values {
		items[i] = Object{Node: list.Content[i], Line: o.Line, Path: Join(o.Path, "items["+strconv.Itoa(i)+"]"), Depth: o.Depth + 1, Kind: kind, value: v, doc: o.doc}
	}
	return items
}

// Without returns the object without a field.
func (o Object) Without(name string) Object {
	node := *Follow(o.Node)
	node.Content = nil
	for k, all := 0, Follow(o.Node).Content; k+1 < len(all); k += 2 {
		if Follow(all[k]).Value != name {
			node.Content = append(node.Content, all[k], all[k+1])
		}
	}
	o.Node = &node
	fields, _ := o.value.(map[string]any)
	fields = maps.Clone(fields)
	delete(fields, name)
	o.value = fields
	return o
}

// Text returns the string below the given names, "" if there is none.
func Text(n *yaml.Node, names ...string) string {
	for _, name := range names {
		if n == nil {
			return ""
		}
		if _, n = Lookup(n, name); n != nil {
			n = Follow(n)
		}
	}
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return ""
	}
	return n.Value
}

// IsNull reports whether a node has no value: null, ~ or no value at all.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// ValidateName returns the problems of a pod name.
func ValidateName(name string) []string { return validation.IsDNS1123Subdomain(name) }
