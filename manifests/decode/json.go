package decode

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"unicode/utf8"
)

var (
	jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// unlikeYAML finds what YAML reads differently in a JSON string, or not at all: \/ and
	// surrogate pairs, and characters that are line ends or not allowed in YAML.
	unlikeYAML = regexp.MustCompile(`\\[/u]|[\x7f-\x{10ffff}]`)
)

// opening precedes JSON for the YAML parsers, which otherwise buffer a thousand tokens of each
// line, as all of them may turn out to be a key.
const opening = "--- "

// asYAML returns a document in a form that YAML parsers read, and the number of columns added
// before it. In a JSON object the strings that they would misread are rewritten; what follows stays
// in its column.
func asYAML(text []byte) (out []byte, before int) {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(text) {
		return text, 0
	}
	if unlikeYAML.Match(text) {
		text = jsonString.ReplaceAllFunc(text, func(quoted []byte) []byte {
			var s string
			if !unlikeYAML.Match(quoted) || json.Unmarshal(quoted, &s) != nil {
				return quoted
			}
			out := strconv.AppendQuote(nil, s)
			shorter := utf8.RuneCount(quoted) - utf8.RuneCount(out)
			return append(out, bytes.Repeat([]byte(" "), max(0, shorter))...)
		})
	}
	return append([]byte(opening), text...), len(opening)
}
