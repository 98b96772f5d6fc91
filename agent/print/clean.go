package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// turns reports whether a character reorders the text beside it, so that a reader sees another
// text (the bidirectional formats of UAX #9).
func turns(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Disturbs reports whether a character could control a terminal or reorder other text.
func Disturbs(r rune) bool { return unicode.IsControl(r) || turns(r) }

// OneLine makes text from elsewhere safe to print: one line, and nothing that could control the
// terminal or reorder other text.
func OneLine(s string) string {
	clean := func(r rune) rune {
		if Disturbs(r) {
			return ' '
		}
		return r
	}
	return strings.Join(strings.Fields(strings.Map(clean, s)), " ")
}

// escaped returns JSON with those characters escaped that control terminals and that encoders
// leave as they are; mark stands before their four digits.
func escaped(data []byte, mark string) []byte {
	var out bytes.Buffer
	for _, r := range string(data) {
		if turns(r) || r >= 0x7f && unicode.IsControl(r) || r == private {
			fmt.Fprintf(&out, "%s%04x", mark, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// JSON returns v as JSON that is safe to print, indented on request, without a newline at its end.
func JSON(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return escaped(bytes.TrimSuffix(out.Bytes(), []byte("\n")), `\u`), err
}

// hole replaces an escaped character until the YAML is made: a control character, because of which
// the encoder quotes and escapes, and one of the private use area, which it leaves as it is, so
// that the two can be found again.
const (
	private = '\uf8f0'
	hole    = `\u0001` + string(private)
)

var yamlHoles = regexp.MustCompile(`\\x01` + string(private) + `([0-9a-f]{4})`)

// YAML returns v as YAML that is safe to print.
func YAML(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if data, err = yaml.JSONToYAML(escaped(data, hole)); err != nil {
		return nil, err
	}
	return yamlHoles.ReplaceAll(data, []byte(`\u$1`)), nil
}
