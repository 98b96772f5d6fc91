package decode

import (
	"strings"
	"testing"
)

// What is in a comment line is found in one reading of the text, and as by one of each line.
func TestPlacesInComments(t *testing.T) {
	for _, text := range []string{"", "#", "# a b", "a # b", "a\n# b\n  # c d\n\t#e\n f # g\n\n#\n", strings.Repeat("x", 50), "\n\n # a"} {
		all := comments{text: []byte(text)}
		for at := 0; at <= len(text); at += 1 + at%3 {
			line := strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t")
			if want, got := strings.HasPrefix(line, "#"), all.has(at); got != want {
				t.Errorf("%q at %d: %v, want %v", text, at, got, want)
			}
		}
	}
}
