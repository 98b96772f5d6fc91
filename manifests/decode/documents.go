// Package decode turns the bytes of a manifest, YAML or JSON, into Kubernetes objects,
// and tells where in the file each field stands.
package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one YAML or JSON document of a file.
type Document struct {
	Root *yaml.Node // its content; nil if it cannot be parsed
	Line int        // what to add to a node's line to count from the file's start
	Err  Problem    // why root is nil
}

// chunk is the text of one document and the line of the file it starts on, from 0.
type chunk struct {
	text []byte
	line int
}

// Documents parses every document of a file on its own, so that a bad one
// does not spoil its neighbours. Empty documents are left out. It ends with an
// error where the file holds more than its budget.
func Documents(data []byte) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		b := newBudget()
		for c := range chunks(data) {
			if blank(c.text) {
				continue
			}
			for _, d := range c.parse(b) {
				if !yield(d) {
					return
				}
			}
			if b.documents < 0 || b.values < 0 {
				return
			}
		}
	}
}

// chunks cuts a file before each line that is a YAML document marker. Such a line
// is always a marker: YAML allows it in no scalar.
func chunks(data []byte) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		start, startLine, line := 0, 0, 0
		for at := 0; at < len(data); line++ {
			end := len(data)
			if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
				end = at + i + 1
			}
			if marker(data[at:end]) && at > start {
				if !yield(chunk{data[start:at], startLine}) {
					return
				}
				start, startLine = at, line
			}
			at = end
		}
		yield(chunk{data[start:], startLine})
	}
}

// marker reports whether a line starts a document.
func marker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// blank reports whether a text holds nothing but comments, directives and markers.
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
func (c chunk) parse(b *budget) (docs []Document) {
	// The parser reports by panic inside and recovers only what it knows.
	defer func() {
		if r := recover(); r != nil {
			docs = append(docs, c.refused(fmt.Errorf("not readable as YAML: %v", r), b))
		}
	}()
	if len(c.text) > maxDocument {
		return []Document{c.tooMuch(0, "larger than 2 MiB: "+splitIt)}
	}
	if root := parseJSON(c.text); root != nil {
		return c.take(docs, root, b)
	}
	dec, meter := newMeter(c.text)
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		switch {
		case errors.Is(err, io.EOF):
			return docs
		case meter.full:
			return append(docs, c.tooMuch(meter.at, fmt.Sprintf("the document holds more than %d values: %s", maxValues, splitIt)))
		case err != nil:
			return append(docs, c.refused(err, b))
		case len(n.Content) == 1:
			docs = c.take(docs, n.Content[0], b)
		}
		if b.documents < 0 || b.values < 0 {
			return docs
		}
	}
}

// take adds a document that was parsed, if it is no more than may be.
func (c chunk) take(docs []Document, root *yaml.Node, b *budget) []Document {
	values, wrong, why := weigh(root)
	b.documents, b.values = b.documents-1, b.values-values
	switch {
	case wrong != nil:
	case b.documents < 0:
		wrong, why = root, fmt.Sprintf("more than %d documents: the rest of the file is not read; use several files", maxDocuments)
	case b.values < 0:
		wrong, why = root, fmt.Sprintf("the file holds more than %d values: the rest of it is not read; use several files", maxFileValues)
	case IsNull(root):
		return docs
	default:
		return append(docs, Document{Root: root, Line: c.line})
	}
	return append(docs, Document{Err: Problem{Line: c.line + wrong.Line, Column: wrong.Column, Message: why}})
}

// tooMuch is a document that is refused at a byte of its text.
func (c chunk) tooMuch(at int, why string) Document {
	s := c.spot(at)
	return Document{Err: Problem{Line: c.line + s.line, Column: s.column, Message: why}}
}
