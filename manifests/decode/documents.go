// Package decode turns the bytes of a manifest, YAML or JSON, into Kubernetes objects, and locates
// each field in the file.
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
	Line int        // to add to a node's line to count from the start of the file
	Err  Problem    // why it cannot be read; an empty message: it can
	says reading
}

// IsTwice reports whether a key of an object stands in it a second time: the last one counts.
func (d Document) IsTwice(key *yaml.Node) bool { return d.says.twice[key] != nil }

// chunk is the text of one document and the line of the file at which it starts, from 0.
type chunk struct {
	text   []byte
	line   int
	before int // columns of its first line that are not in the file
	file   *privacy
}

// Documents parses every document of a file separately, so that a bad one does not affect the
// others. Empty documents are left out. Where the file exceeds its budget, the last document is an
// error.
func Documents(data []byte) iter.Seq[Document] { return documents(data, &privacy{data: data}) }

// documents is Documents with p deciding whether the file may be quoted.
func documents(data []byte, p *privacy) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		b := newBudget()
		for c := range chunks(data) {
			if blank(c.text) {
				continue
			}
			c.file = p
			d := c.parse(b)
			if d != nil && !yield(*d) {
				return
			}
			if b.documents < 0 || b.values < 0 {
				return
			}
		}
	}
}

// chunks splits a file before each line that is a YAML document marker. Such a line is always a
// marker: YAML allows it in no scalar.
func chunks(data []byte) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		start, startLine, line := 0, 0, 0
		for at := 0; at < len(data); line++ {
			end := len(data)
			if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
				end = at + i + 1
			}
			if marker(data[at:end]) && at > start {
				if !yield(chunk{text: data[start:at], line: startLine}) {
					return
				}
				start, startLine = at, line
			}
			at = end
		}
		yield(chunk{text: data[start:], line: startLine})
	}
}

// marker reports whether a line starts a document.
func marker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// blank reports whether a text consists of comments, directives and markers only.
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

// parse returns the chunk's document; nil if it is empty.
func (c chunk) parse(b *budget) (d *Document) {
	// The parsers panic internally and recover only from the errors that they know.
	defer func() {
		if r := recover(); r != nil {
			d = c.refused(fmt.Errorf("not readable as YAML: %v", r), b)
		}
	}()
	if len(c.text) > maxDocument {
		return c.wrong(spot{1, 1}, Fixed("larger than 2 MiB: "+splitIt))
	}
	c.text, c.before = asYAML(c.text)
	dec, meter := newMeter(c.text)
	var first, second yaml.Node
	err := dec.Decode(&first)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = dec.Decode(&second)
	}
	switch {
	case meter.full:
		return c.wrong(c.spot(meter.at), Fixed(fmt.Sprintf("the document holds more than %d values: %s", maxValues, splitIt)))
	case err == nil:
		return c.wrong(spot{second.Line, second.Column}, Fixed("a second document begins without a line of its own: end lines with \\n"))
	case !errors.Is(err, io.EOF):
		return c.refused(err, b)
	case len(first.Content) != 1:
		return nil
	}
	return c.take(first.Content[0], b)
}

// take reads a parsed document if it is within the limits.
func (c chunk) take(root *yaml.Node, b *budget) *Document {
	values, wrong, why := weigh(root, c.before)
	b.documents, b.values = b.documents-1, b.values-values
	switch {
	case wrong != nil:
	case b.documents < 0:
		wrong, why = root, Fixed(fmt.Sprintf("more than %d documents: the rest of the file is not read; use several files", maxDocuments))
	case b.values < 0:
		wrong, why = root, Fixed(fmt.Sprintf("the file holds more than %d values: the rest of it is not read; use several files", maxFileValues))
	case IsNull(root):
		return nil
	default:
		return c.read(root)
	}
	return c.wrong(spot{wrong.Line, wrong.Column}, why)
}

// read decodes a document with the kubelet's parser.
func (c chunk) read(root *yaml.Node) *Document {
	d := &Document{Root: root, Line: c.line}
	r := &d.says
	r.root, r.privacy = root, c.file
	var err error
	if r.value, err = asJSON(c.text); err == nil {
		r.pair(root, r.value)
	} else {
		r.blame(root)
		at := *root
		if line, _ := errorLine(err); line > 0 {
			at.Line, at.Column = min(line, 1+bytes.Count(c.text, []byte("\n"))), 1
		}
		r.refuse(&at, Message{"the kubelet cannot read this: " + err.Error(), "the kubelet cannot read this: put keys and strings in quotes, without tags"})
	}
	if r.at == nil {
		return d
	}
	d.Err = c.wrong(spot{r.at.Line, r.at.Column}, r.why).Err
	each(root, "", func(n *yaml.Node, path string) {
		if n == r.at {
			d.Err.Field = clipAt(path, maxSaid/2)
		}
	})
	if c.file.isKept() {
		d.Err.Field = openPath(root, d.Err.Field, c.file.names())
	}
	return d
}

// wrong returns a document that is refused at a position of its text.
func (c chunk) wrong(at spot, why Message) *Document {
	return &Document{Err: Problem{Line: c.line + at.line, Column: at.column, Message: clipAt(why.from(c.file), maxSaid)}, says: reading{privacy: c.file}}
}
