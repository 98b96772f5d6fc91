package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one YAML or JSON document of a file.
type document struct {
	root *yaml.Node // its content; nil if it cannot be parsed
	line int        // what to add to a node's line to count from the file's start
	err  Problem    // why root is nil
}

// chunk is the text of one document and the line of the file it starts on, from 0.
type chunk struct {
	text []byte
	line int
}

// documents parses every document of a file on its own, so that a bad one
// does not spoil its neighbours. Empty documents are left out.
func documents(data []byte) iter.Seq[document] {
	return func(yield func(document) bool) {
		for _, c := range chunks(data) {
			if blank(c.text) {
				continue
			}
			for _, d := range c.parse() {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// chunks cuts a file before each line that is a YAML document marker. Such a
// line is a marker wherever it stands: YAML allows it in no scalar.
func chunks(data []byte) []chunk {
	var list []chunk
	start, startLine, line := 0, 0, 0
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if marker(data[at:end]) && at > start {
			list = append(list, chunk{data[start:at], startLine})
			start, startLine = at, line
		}
		at = end
	}
	return append(list, chunk{data[start:], startLine})
}

// marker tells if a line begins a document.
func marker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// blank tells if a text holds nothing but comments, directives and markers.
func blank(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(text) {
		if marker(line) {
			line = line[3:]
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && string(line) != "..." {
			return false
		}
	}
	return true
}

// parse returns the chunk's documents; usually that is one.
func (c chunk) parse() (docs []document) {
	// The parser reports by panic inside and recovers only what it knows.
	defer func() {
		if r := recover(); r != nil {
			docs = append(docs, c.refused(fmt.Errorf("not readable as YAML: %v", r)))
		}
	}()
	if root := parseJSON(c.text); root != nil {
		return []document{{root: root, line: c.line}}
	}
	dec := yaml.NewDecoder(bytes.NewReader(c.text))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			return append(docs, c.refused(err))
		}
		if len(n.Content) == 1 && !isNull(n.Content[0]) {
			docs = append(docs, document{root: n.Content[0], line: c.line})
		}
	}
}
