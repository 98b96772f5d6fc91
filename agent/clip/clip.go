// Package clip bounds what those say whom a probe or a hook asks: a command, a server or its
// answer may say anything, at any length.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Head returns the beginning of a text, of at most so many bytes, without blanks around it. What
// is no UTF-8 is left out.
func Head(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, ""))
}

// Tail is Head for the end of a text.
func Tail(text string, most int) string {
	begin := max(0, len(text)-most)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[begin:], ""))
}

// Error is an error whose text is bounded; nil of nil.
func Error(err error, most int) error {
	if err == nil || len(err.Error()) <= most {
		return err
	}
	return &long{err, Head(err.Error(), most)}
}

type long struct {
	err  error
	text string
}

func (l *long) Error() string { return l.text }
func (l *long) Unwrap() error { return l.err }
