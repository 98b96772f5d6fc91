// Package shell writes words such that a shell takes them as they are. Whatever monopod
// prints as a command to copy has the names and paths in it, which others may have chosen,
// through Word.
package shell

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_/.,:=@%+-]+$`)

// Word writes a word such that a shell takes it as it is. What a terminal
// might obey is escaped, which shells understand that know $'...'.
func Word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		if plainWord.Match([]byte{c}) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String() + "'"
}
