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
	// unlikeYAML finds what YAML reads otherwise in a string, or not at all: \/ and
	// surrogate pairs, and characters that are line ends or no text in YAML.
	unlikeYAML = regexp.MustCompile(`\\[/u]|[\x7f-\x{10ffff}]`)
)

// opening stands before JSON for YAML's parsers, which otherwise keep a thousand
// tokens of each line in hand, as all may turn out to be a key.
const opening = "--- "

// asYAML returns a document as YAML's parsers read it, and how many columns stand
// before it. An object in JSON has the strings written out that they misread;
// what follows stays in its column.
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
