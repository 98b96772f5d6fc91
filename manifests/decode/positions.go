package decode

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place returns the node to point at for a value: the value itself if it is
// something to read, its key if it is a collection or empty. key is nil for
// an item of a list.
func place(key, value *yaml.Node) *yaml.Node {
	if key == nil || value.Kind == yaml.ScalarNode && value.Value != "" || value.Kind == yaml.AliasNode {
		return value
	}
	return key
}

// Find returns the node to point at for a field path such as
// spec.containers[0].image or metadata.labels[app]. Where the path leaves the
// manifest it is the nearest parent that exists.
func Find(root *yaml.Node, path string) *yaml.Node {
	value, at := Follow(root), root
	for path != "" {
		var name string
		name, path = nextStep(path)
		switch value.Kind {
		case yaml.MappingNode:
			k, v := Lookup(value, name)
			if v == nil {
				return at
			}
			at, value = place(k, v), Follow(v)
		case yaml.SequenceNode:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(value.Content) {
				return at
			}
			at, value = value.Content[i], Follow(value.Content[i])
		default:
			return at
		}
	}
	return at
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

// Follow returns what an alias stands for.
func Follow(n *yaml.Node) *yaml.Node {
	for range maxDepth {
		if n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return n
}

// Lookup returns the last entry of that name in a mapping, and in the
// mappings merged into it; nil if there is none.
func Lookup(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	return lookupBelow(mapping, name, 4)
}

func lookupBelow(mapping *yaml.Node, name string, depth int) (key, value *yaml.Node) {
	var merged []*yaml.Node
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		k := mapping.Content[i]
		if isMerge(k) {
			merged = append(merged, mapping.Content[i+1])
		} else if text, ok := keyText(Follow(k)); ok && text == name {
			return k, mapping.Content[i+1]
		}
	}
	if depth == 0 {
		return nil, nil
	}
	for _, m := range merged {
		m = Follow(m)
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content[:min(len(m.Content), 5)]
		}
		for _, s := range sources {
			if s = Follow(s); s.Kind == yaml.MappingNode {
				if k, v := lookupBelow(s, name, depth-1); v != nil {
					return k, v
				}
			}
		}
	}
	return nil, nil
}

// isMerge reports whether a key merges other mappings into this one.
func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && (k.Tag == "" || k.Tag == "!!merge")
}
