package once

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Removal is the command that removes the rest of a run, to be copied into a
// shell.
func Removal(dir string) string { return "`monopod once --remove " + shellWord(dir) + "`" }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_/.,:=@%+-]+$`)

// shellWord writes a word such that a shell takes it as it is. What a terminal
// might obey is escaped, which shells understand that know $'...'.
func shellWord(s string) string {
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
