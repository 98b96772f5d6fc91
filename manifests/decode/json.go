package decode

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// jsonReader turns JSON into the node tree that YAML gives. YAML itself reads
// most JSON, but not escaped surrogate pairs, and not keys beyond 1024 bytes.
type jsonReader struct {
	text []byte
	dec  *json.Decoder
	at   int64 // up to where line and column are counted
	line int
	col  int
	left int // values that there may still be
}

// parseJSON returns the tree of one JSON object, nil if text is none.
func parseJSON(text []byte) *yaml.Node {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(text) {
		return nil
	}
	r := &jsonReader{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1, col: 1, left: maxValues}
	r.dec.UseNumber()
	return r.value(0)
}

// value reads the next value; it returns nil below maxDepth and beyond maxValues,
// where YAML's reader then reports the problem.
func (r *jsonReader) value(depth int) *yaml.Node {
	line, col := r.position()
	token, err := r.dec.Token()
	if r.left--; err != nil || depth > maxDepth || r.left < 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: line, Column: col}
	switch t := token.(type) {
	case json.Delim:
		if !r.collection(n, t, depth) {
			return nil
		}
	case string:
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, t
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if t {
			n.Value = "true"
		}
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}

// collection reads an object or a list up to its end.
func (r *jsonReader) collection(n *yaml.Node, open json.Delim, depth int) bool {
	n.Kind, n.Tag, n.Style = yaml.MappingNode, "!!map", yaml.FlowStyle
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for r.dec.More() {
		child := r.value(depth + 1)
		if child == nil {
			return false
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.dec.Token()
	return err == nil
}

// position returns the line and column, from 1, of the next token.
func (r *jsonReader) position() (int, int) {
	end := r.dec.InputOffset()
	for end < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[end]) >= 0 {
		end++
	}
	for r.at < end {
		c, size := utf8.DecodeRune(r.text[r.at:])
		if r.at += int64(size); c == '\n' {
			r.line, r.col = r.line+1, 1
		} else {
			r.col++
		}
	}
	return r.line, r.col
}
