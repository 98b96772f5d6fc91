// Package shell quotes words for a shell. Whatever monopod prints as a command to copy quotes its
// names and paths with Word, as others may have chosen them.
package shell

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_/.,:=@%+-]+$`)

// Word quotes a word so that a shell takes it literally. Characters that may control a terminal are
// escaped; this needs a shell that knows $'...'.
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
