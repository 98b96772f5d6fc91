package decode

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position is a place in a file.
type Position struct{ Line, Column int } // from 1; 0: unknown

// place returns the node to report for a value: the value itself if it is a non-empty scalar, its
// key if it is a collection or empty. key is nil for an item of a list.
func place(key, value *yaml.Node) *yaml.Node {
	if key == nil || value.Kind == yaml.ScalarNode && value.Value != "" || value.Kind == yaml.AliasNode {
		return value
	}
	return key
}

// Find returns the node to report for a field path such as spec.containers[0].image or
// metadata.labels[app]. Where the path is not in the manifest it is the nearest parent that exists.
func Find(root *yaml.Node, path string) *yaml.Node {
	at, _ := find(root, path)
	return at
}

// find is Find that also returns the value at the path.
func find(root *yaml.Node, path string) (at, value *yaml.Node) {
	at, value = root, Follow(root)
	for path != "" {
		var name string
		name, path = nextStep(path)
		switch value.Kind {
		case yaml.MappingNode:
			k, v := Lookup(value, name)
			if v == nil {
				return at, value
			}
			at, value = place(k, v), Follow(v)
		case yaml.SequenceNode:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(value.Content) {
				return at, value
			}
			at, value = value.Content[i], Follow(value.Content[i])
		default:
			return at, value
		}
	}
	return at, value
}

// nextStep cuts the first field, index or key off a path.
func nextStep(path string) (name, rest string) {
	path = strings.TrimPrefix(path, ".")
	if inner, ok := strings.CutPrefix(path, "["); ok {
		name, rest, _ = strings.Cut(inner, "]")
		return name, rest
	}
	if i := strings.IndexAny(path, ".["); i > 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// Follow returns the node that an alias refers to.
func Follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Lookup returns the last entry of that name in a mapping; nil if there is none.
func Lookup(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		if k := mapping.Content[i]; k.Kind == yaml.ScalarNode && k.Value == name {
			return k, mapping.Content[i+1]
		}
	}
	return nil, nil
}

// Keys returns the keys of the mapping below the given names.
func Keys(n *yaml.Node, names ...string) (keys []*yaml.Node) {
	for _, name := range names {
		_, value := Lookup(n, name)
		if value == nil {
			return nil
		}
		n = Follow(value)
	}
	for k := 0; n.Kind == yaml.MappingNode && k+1 < len(n.Content); k += 2 {
		keys = append(keys, Follow(n.Content[k]))
	}
	return keys
}

// each visits a value and all nested ones, through aliases, each with its path. A key has the path
// of its object.
func each(n *yaml.Node, path string, visit func(n *yaml.Node, path string)) {
	visit(n, path)
	n = Follow(n)
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.SequenceNode {
			at += "[" + strconv.Itoa(i) + "]"
		} else if i%2 == 1 && !isMerge(n.Content[i-1]) {
			at = Join(path, n.Content[i-1].Value)
		}
		each(child, at, visit)
	}
}
