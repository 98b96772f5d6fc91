package manifests

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxRetried bounds the texts in which the place of an error is searched for
// by parsing them again.
const maxRetried = 16 << 10

// refused is the document of a text that does not parse.
func (c chunk) refused(err error) document {
	line, text := errorLine(err)
	at := c.place(line, text)
	source := bytes.Split(c.text, []byte("\n"))[at.line-1]
	indent := source[:len(source)-len(bytes.TrimLeft(source, " \t"))]
	if at.column == 0 {
		at.column = len(indent) + 1
	}
	if bytes.IndexByte(indent, '\t') >= 0 {
		text += " (indent with spaces, not tabs)"
	}
	return document{err: Problem{Line: c.line + at.line, Column: at.column, Message: "not valid YAML: " + text}}
}

// spot is a place in a text, from 1; column 0: the first word of the line.
type spot struct{ line, column int }

// place finds what the parser complains about. The parser itself names no
// line, or the line where the surrounding block began.
func (c chunk) place(line int, text string) spot {
	if anchor, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		return c.spot(bytes.Index(c.text, []byte("*"+anchor)))
	}
	if !utf8.Valid(c.text) || strings.HasPrefix(text, "control characters") {
		return c.spot(bytes.IndexFunc(c.text, func(r rune) bool {
			return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
		}))
	}
	lines := bytes.SplitAfter(bytes.TrimRight(c.text, " \t\r\n"), []byte("\n"))
	if strings.HasPrefix(text, "did not find expected") {
		line++ // these count from 0
		if len(c.text) < maxRetried {
			line = max(line, readable(lines)+1)
		}
	}
	return spot{line: max(1, min(line, len(lines)))}
}

// spot is the place of a byte; the beginning if there is no such byte.
func (c chunk) spot(at int) spot {
	before := c.text[:max(at, 0)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return spot{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])}
}

// readable returns how many lines from the first on are good YAML.
func readable(lines [][]byte) int {
	for n := len(lines) - 1; n > 0; n-- {
		if yaml.Unmarshal(slices.Concat(lines[:n]...), &yaml.Node{}) == nil {
			return n
		}
	}
	return 0
}

// errorLine takes the line out of the parser's error; 0 if there is none.
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
