package decode

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Limits of a file. They count bytes and values instead of time, so that a slow machine refuses
// nothing that a fast one reads. Everything is counted before any value is decoded.
const (
	// MaxSize is the largest size of a file in bytes, as the kubelet has it.
	MaxSize = 10 << 20
	// maxDocument is the largest size of one document in bytes, and of the text that its aliases
	// add.
	maxDocument = 2 << 20
	// maxValues is how many values a document may hold: objects, lists, keys and scalars; each
	// alias counts as everything that it refers to.
	maxValues = 100_000
	// maxFileValues is how many values all documents of a file may hold together.
	maxFileValues = 4 * maxValues
	// maxDocuments is how many documents a file may hold.
	maxDocuments = 5000
	// maxDepth is how deep a manifest may nest. A Pod needs about 15 levels.
	maxDepth = 100
	// maxRetried is how many bytes of a file are parsed a second time to locate an error.
	maxRetried = 4 << 20
	// maxAsked is how many different scalars of a document are parsed again on their own.
	maxAsked = 1000
	// maxTokens stops the parser: no document of maxValues values has more tokens, unless many of
	// its values have anchors or tags.
	maxTokens = 2 * maxValues
)

// budget is what is left of the limits for the documents of one file.
type budget struct{ documents, values, retried int }

func newBudget() *budget { return &budget{maxDocuments, maxFileValues, maxRetried} }

// errSpent is the error of a file whose budget is spent.
var errSpent = errors.New("the budget is spent")

// meter passes a text to the YAML parser piece by piece and ends it when the parser has made too
// many tokens: its tree takes up to 200 bytes for each byte of the text. The parser has no such
// limit and no callback before the tree is complete, so the meter reads the parser's own token
// count.
type meter struct {
	text   []byte
	at     int
	tokens reflect.Value // the parser's count
	full   bool
}

// newMeter returns a decoder of a text that stops at maxTokens, and the meter that it reads from.
func newMeter(text []byte) (*yaml.Decoder, *meter) {
	m := &meter{text: text}
	dec := yaml.NewDecoder(m)
	m.tokens = reflect.ValueOf(dec).Elem().FieldByName("parser").Elem().FieldByName("parser").FieldByName("tokens_parsed")
	return dec, m
}

// Read returns the next piece, in the size that the parser requests.
func (m *meter) Read(p []byte) (int, error) {
	if m.tokens.Int() > maxTokens {
		m.full = true
		return 0, errSpent
	}
	n := copy(p, m.text[m.at:])
	m.at += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// weight is the size of a value with aliases and merge keys expanded.
type weight struct {
	values int
	bytes  int // of scalars
	height int // of the nesting below it
}

// scale weighs the values of one document.
type scale struct {
	anchored map[*yaml.Node]*weight // nil while the value is being weighed
	left     int                    // values
	added    int                    // bytes, by aliases
	before   int                    // columns of the first line that are not in the file
	wrong    *yaml.Node             // the value that exceeds a limit; nil: none
	why      Message
}

// weigh returns the number of values in a document, or the node that exceeds a limit and the
// reason. It subtracts the added columns from the first line.
func weigh(root *yaml.Node, before int) (values int, wrong *yaml.Node, why Message) {
	s := &scale{anchored: map[*yaml.Node]*weight{}, left: maxValues, before: before}
	w := s.weigh(root, 0)
	return w.values, s.wrong, s.why
}

// weigh weighs one value at a depth. Once a limit is exceeded it returns at once.
func (s *scale) weigh(n *yaml.Node, depth int) weight {
	if n.Line == 1 {
		n.Column -= s.before
	}
	if n.Kind == yaml.AliasNode {
		return s.alias(n, depth)
	}
	if s.left--; s.left < 0 {
		s.refuse(n, Fixed(fmt.Sprintf("the document holds more than %d values: %s", maxValues, splitIt)))
	} else if depth > maxDepth {
		s.refuse(n, Fixed(fmt.Sprintf("nested deeper than %d levels", maxDepth)))
	}
	w := weight{values: 1, bytes: len(n.Value)}
	if n.Anchor != "" {
		s.anchored[n] = nil
	}
	for _, child := range n.Content {
		if s.wrong != nil {
			return w
		}
		c := s.weigh(child, depth+1)
		w.values, w.bytes, w.height = w.values+c.values, w.bytes+c.bytes, max(w.height, 1+c.height)
	}
	if n.Anchor != "" {
		s.anchored[n] = &w
	}
	return w
}

// alias weighs an alias as the value that it refers to, which has been weighed before.
func (s *scale) alias(n *yaml.Node, depth int) weight {
	w := s.anchored[n.Alias]
	if w == nil {
		const inside = " stands inside what it stands for: an alias cannot hold itself"
		s.refuse(n, Message{"*" + Clip(n.Value) + inside, "the alias" + inside})
		return weight{}
	}
	s.left, s.added = s.left-w.values, s.added+w.bytes
	switch {
	case s.left < 0:
		s.refuse(n, Fixed(fmt.Sprintf("the aliases stand for more than %d values: write out what is meant, in several files if need be", maxValues)))
	case s.added > maxDocument:
		s.refuse(n, Fixed("the aliases stand for more than 2 MiB of text: write out what is meant, in several files if need be"))
	case depth+w.height > maxDepth:
		s.refuse(n, Fixed(fmt.Sprintf("nested deeper than %d levels", maxDepth)))
	}
	return *w
}

func (s *scale) refuse(n *yaml.Node, why Message) {
	if s.wrong == nil {
		s.wrong, s.why = n, why
	}
}

const splitIt = "put its pods into several documents or files"
