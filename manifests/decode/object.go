package decode

import (
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is one Kubernetes object of a document: its root or an item of a list.
type Object struct {
	Node  *yaml.Node
	Line  int         // to add to the lines of nodes
	Path  *field.Path // of the object in its document, nil for the root
	Depth int         // of lists around it
	Kind  string      // of an object that need not say its kind
}

// Text returns the string below the given names, "" if there is none.
func Text(n *yaml.Node, names ...string) string {
	for _, name := range names {
		if n.Kind != yaml.MappingNode {
			return ""
		}
		_, value := Lookup(n, name)
		if value == nil {
			return ""
		}
		n = Follow(value)
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	s, _ := scalar(n).(string)
	return s
}
