package decode

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxRetry is the largest text, in bytes, that is parsed again to locate an error.
const maxRetry = 16 << 10

// refused returns the document for a text that does not parse.
func (c chunk) refused(err error, b *budget) *Document {
	line, text := errorLine(err)
	at := c.place(line, text, b)
	source := nthLine(c.text, at.line)
	indent := source[:len(source)-len(bytes.TrimLeft(source, " \t"))]
	if at.column == 0 {
		at.column = len(indent) + 1
	}
	tabs := ""
	if bytes.IndexByte(indent, '\t') >= 0 {
		tabs = " (indent with spaces, not tabs)"
	}
	return c.wrong(at, Message{"not valid YAML: " + text + tabs, "not valid YAML: " + plainFault(text) + tabs})
}

// unknownAnchor is the beginning of the parser's error about an alias without an anchor.
const unknownAnchor = "unknown anchor '"

// plainFaults are the parser's common error texts that quote nothing.
var plainFaults = []string{
	"mapping values are not allowed in this context", "block sequence entries are not allowed in this context",
	"block collection entries are not allowed in this context", "mapping keys are not allowed in this context",
	"could not find expected ':'", "did not find expected key", "did not find expected node content",
	"did not find expected '-' indicator", "did not find expected ',' or ']'", "did not find expected ',' or '}'",
	"did not find expected alphabetic or numeric character", "did not find expected comment or line break",
	"did not find expected whitespace or line break", "did not find expected hexdecimal number",
	"found character that cannot start any token", "found a tab character that violates indentation",
	"found a tab character where an indentation space is expected", "found unexpected end of stream",
	"found unexpected document indicator", "found unknown escape character", "found undefined tag handle",
	"control characters are not allowed", "invalid leading UTF-8 octet", "invalid trailing UTF-8 octet",
}

// plainFault returns the parser's error text, or the usual remedy if that text would quote the
// document.
func plainFault(text string) string {
	switch {
	case slices.Contains(plainFaults, text):
		return text
	case strings.HasPrefix(text, unknownAnchor):
		return "no anchor has this name: put strings that begin with * in quotes"
	}
	return "put strings in quotes, and indent with spaces"
}

// spot is a place in a text, from 1; column 0: the first word of the line.
type spot struct{ line, column int }

// place locates the parser's error. The parser itself reports no line, or the line where the
// surrounding block began.
func (c chunk) place(line int, text string, b *budget) spot {
	if anchor, ok := strings.CutPrefix(text, unknownAnchor); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		return c.spot(bytes.Index(c.text, []byte("*"+anchor)))
	}
	if !utf8.Valid(c.text) || strings.HasPrefix(text, "control characters") {
		return c.spot(bytes.IndexFunc(c.text, func(r rune) bool {
			return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
		}))
	}
	written := bytes.TrimRight(c.text, " \t\r\n")
	if strings.HasPrefix(text, "did not find expected") {
		line++ // the parser counts from 0 here
		if len(c.text) < maxRetry {
			line = max(line, b.readable(bytes.SplitAfter(written, []byte("\n")))+1)
		}
	}
	return spot{line: max(1, min(line, 1+bytes.Count(written, []byte("\n"))))}
}

// nthLine returns a line of a text, counted from 1, without its line end.
func nthLine(text []byte, n int) []byte {
	for ; n > 1; n-- {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// spot returns the position of a byte; the beginning if there is no such byte.
func (c chunk) spot(at int) spot {
	before := c.text[:max(at, 0)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return spot{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])}
}

// readable returns how many lines from the first on are valid YAML; 0 if the budget does not allow
// it.
func (b *budget) readable(lines [][]byte) int {
	for n := len(lines) - 1; n > 0; n-- {
		text := slices.Concat(lines[:n]...)
		if b.retried -= len(text); b.retried < 0 {
			return 0
		}
		if yaml.Unmarshal(text, &yaml.Node{}) == nil {
			return n
		}
	}
	return 0
}

// errorLine splits the line number from the parser's error; 0 if there is none.
func errorLine(err error) (int, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, rest, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return line, rest
			}
		}
	}
	return 0, text
}
