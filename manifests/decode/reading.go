package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kubelet "sigs.k8s.io/yaml"
)

// reading combines the two parses of one document. The content is what the kubelet's parser
// returns, whose YAML is version 1.1: yes, no, on and off are booleans, 0644 is octal, of two
// fields with one name the later counts. The nodes of the other parser give the positions; they
// take the types of their scalars and the names of their keys from the first.
type reading struct {
	value any                       // the content: maps, lists, strings, booleans, json.Number and nil
	twice map[*yaml.Node]*yaml.Node // duplicate keys of an object: the key before
	heavy bool                      // a scalar may be a quantity that is not bearable
	asked map[string]any            // scalars that were parsed on their own
	at    *yaml.Node                // where it cannot be read; nil: nowhere
	why   Message

	root    *yaml.Node // of the document
	privacy *privacy   // of its file
}

// asJSON parses as the kubelet does. Duplicates are found in the nodes instead: the strict library
// reports a field beside a merge key that also has it as a duplicate.
func asJSON(text []byte) (value any, err error) {
	if text, err = kubelet.YAMLToJSON(text); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return value, dec.Decode(&value)
}

// alone parses a scalar as the kubelet would if it were the whole document. It is for the few
// scalars that are not spelled as in JSON.
func (r *reading) alone(n *yaml.Node) (any, error) {
	text := n.Value
	if n.Style&yaml.TaggedStyle != 0 {
		text = "!<" + n.LongTag() + "> " + strconv.Quote(text)
	} else if n.Style != 0 || strings.ContainsAny(text, "\r\n") {
		text = strconv.Quote(text)
	}
	if v, ok := r.asked[text]; ok {
		return v, nil
	}
	if len(r.asked) == maxAsked {
		r.refuse(n, Fixed(fmt.Sprintf("more than %d scalars are spelled as only YAML 1.1 has them: spell them as in JSON", maxAsked)))
		return nil, errSpent
	}
	list, err := asJSON([]byte("- " + text))
	if err != nil {
		return nil, err
	}
	if r.asked == nil {
		r.asked = map[string]any{}
	}
	r.asked[text] = list.([]any)[0]
	return r.asked[text], nil
}

// refuse records an error, unless there is one already.
func (r *reading) refuse(n *yaml.Node, why Message) {
	if r.at == nil {
		r.at, r.why = n, why
	}
}

// differ refuses a document that the two parsers read differently.
func (r *reading) differ(n *yaml.Node, here, kubelet string) {
	const remedy = ": write << before all other fields of its object, put keys and strings in quotes, and end lines with \\n"
	r.refuse(n, Message{fmt.Sprintf("can be read in two ways, as %s and, by the kubelet (YAML 1.1), as %s%s", here, Clip(kubelet), remedy),
		"can be read in two ways, here and by the kubelet (YAML 1.1)" + remedy})
}

// pair compares a node with the value that was read for it.
func (r *reading) pair(n *yaml.Node, v any) {
	if r.at != nil {
		return
	}
	at := n
	n = Follow(n)
	switch v := v.(type) {
	case map[string]any:
		if n.Kind == yaml.MappingNode {
			r.mapping(n, v)
			return
		}
	case []any:
		if n.Kind == yaml.SequenceNode && len(n.Content) == len(v) {
			for i, item := range n.Content {
				r.pair(item, v[i])
			}
			return
		}
	default:
		if n.Kind == yaml.ScalarNode && r.scalar(n, v) {
			return
		}
	}
	text, _ := json.Marshal(v) // cannot fail: the value comes from JSON
	r.differ(at, describe(n), string(text))
}

// scalar gives a scalar node the type and the text of a value. It returns false if the node, parsed
// on its own, has another value.
func (r *reading) scalar(n *yaml.Node, v any) bool {
	tag, text := "!!null", ""
	switch v := v.(type) {
	case bool:
		tag, text = "!!bool", strconv.FormatBool(v)
	case json.Number:
		tag, text = "!!float", v.String()
	case string:
		tag, text = "!!str", v
	}
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Value != text || n.Style&quoted != 0 && tag != "!!str" {
		if again, err := r.alone(n); err != nil || again != v {
			return false
		}
	}
	n.Tag = tag
	if tag == "!!str" {
		n.Value = text
	}
	r.heavy = r.heavy || !bearable(text) && strings.IndexByte("+-.0123456789", text[0]) >= 0
	return true
}

// mapping pairs the entries of an object and reduces them to those that count: merged ones are
// expanded, duplicates are removed.
func (r *reading) mapping(n *yaml.Node, v map[string]any) {
	n.Content = r.entries(n, v)
	if len(n.Content) != 2*len(v) {
		r.differ(n, fmt.Sprintf("an object of %d fields", len(n.Content)/2), fmt.Sprintf("one of %d", len(v)))
	}
	for pair := range slices.Chunk(n.Content, 2) {
		name := pair[0].Value
		if value, ok := v[name]; ok {
			r.pair(pair[1], value)
		} else {
			r.differ(pair[0], "the key "+strconv.Quote(Clip(name)), "another")
		}
	}
}

// entries returns keys and values of a mapping in order, merged ones last. Of two with one name the
// later counts.
func (r *reading) entries(n *yaml.Node, v map[string]any) []*yaml.Node {
	list := make([]*yaml.Node, 0, len(n.Content))
	seen := map[string]int{}
	var merged []*yaml.Node
	for pair := range slices.Chunk(n.Content, 2) {
		if isMerge(pair[0]) {
			merged = append(merged, sources(pair[1])...)
			continue
		}
		key := r.named(pair[0], v)
		first, again := seen[key.Value]
		if !again {
			seen[key.Value] = len(list)
			list = append(list, key, pair[1])
			continue
		}
		if r.twice == nil {
			r.twice = map[*yaml.Node]*yaml.Node{}
		}
		r.twice[key] = list[first]
		list[first], list[first+1] = key, pair[1]
	}
	for _, m := range merged {
		for pair := range slices.Chunk(r.entries(m, v), 2) {
			if _, ok := seen[pair[0].Value]; !ok {
				seen[pair[0].Value] = len(list)
				list = append(list, pair...)
			}
		}
	}
	return list
}

// sources returns the mappings that a merge key names.
func sources(value *yaml.Node) []*yaml.Node {
	if value = Follow(value); value.Kind != yaml.SequenceNode {
		return []*yaml.Node{value}
	}
	list := make([]*yaml.Node, len(value.Content))
	for i, item := range value.Content {
		list[i] = Follow(item)
	}
	return list
}

// named returns a key with the text that is its name in an object: on is "true".
func (r *reading) named(key *yaml.Node, object map[string]any) *yaml.Node {
	target := Follow(key)
	name := target.Value
	if _, ok := object[name]; !ok {
		if v, err := r.alone(target); err == nil {
			name = fmt.Sprint(v)
		}
	}
	if target == key && name == key.Value {
		return key
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: key.Line, Column: key.Column}
}

// isMerge reports whether a key merges other mappings into this one.
func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && (k.Tag == "" || k.Tag == "!!merge")
}

// blame locates what the kubelet's parser refuses, as the parser reports no position.
func (r *reading) blame(n *yaml.Node) {
	for i, child := range n.Content {
		switch key := Follow(child); {
		case n.Kind != yaml.MappingNode || i%2 == 1:
		case isMerge(key):
			for _, m := range sources(n.Content[i+1]) {
				if m.Kind != yaml.MappingNode {
					r.refuse(n.Content[i+1], Got("<< merges objects", m))
				}
			}
		case key.Kind != yaml.ScalarNode || IsNull(key):
			r.refuse(child, Got("the key must be a string", key))
		}
		r.blame(child)
	}
	odd := n.Style&yaml.TaggedStyle != 0 || n.ShortTag() == "!!float" && strings.ContainsAny(n.Value, "nN") // .inf, .nan
	if n.Kind == yaml.ScalarNode && odd && r.at == nil {
		if _, err := r.alone(n); err != nil {
			r.refuse(n, Message{"put it in quotes, without a tag: " + err.Error(), "put it in quotes, without a tag"})
		}
	}
}
