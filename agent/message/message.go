// Package message makes texts with a known public part, which anybody may read.
package message

import (
	"fmt"
	"strings"
	"time"
)

// Mark replaces, in the public form of a text, what only root may read.
const Mark = "<elided>"

// Text is a text of the agent in two forms: whole, for root, and public, as anybody may read it.
// What is public is decided where a text is made, from its parts: no text is ever searched. The
// zero Text is empty.
type Text struct{ whole, public string }

// words are literals of the program: other packages cannot make them of a string that they were
// given.
type words string

// Fixed returns a text that is always the same: anybody may read it.
func Fixed(w words) Text { return Text{string(w), string(w)} }

// Private returns a text that only root may read, such as the words of a container, of the
// runtime, or of an error.
func Private(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{text, Mark}
}

// Instead returns a text with another one as its public form.
func Instead(whole string, public Text) Text { return Text{whole, public.public} }

// Of returns fixed words, in which each verb of fmt is replaced by a part. Anybody may read the
// words and the parts, except for private texts.
func Of(format words, parts ...Part) Text {
	whole, public := make([]any, len(parts)), make([]any, len(parts))
	for k, p := range parts {
		whole[k], public[k] = p.forms()
	}
	return Text{fmt.Sprintf(string(format), whole...), fmt.Sprintf(string(format), public...)}
}

// Join returns the texts with fixed words between each two.
func Join(texts []Text, between words) Text {
	var whole, public []string
	for _, t := range texts {
		whole, public = append(whole, t.whole), append(public, t.public)
	}
	return Text{strings.Join(whole, string(between)), strings.Join(public, string(between))}
}

// String returns the whole text, for root.
func (t Text) String() string { return t.whole }

// Public returns the text as anybody may read it.
func (t Text) Public() string { return t.public }

// Part is what a text may contain.
type Part interface{ forms() (whole, public any) }

func (t Text) forms() (whole, public any) { return t.whole, t.public }

// Name is what anybody sees of a pod or node anyway: the names of pods, containers, images, nodes
// and resources, uids, and sentences of only these and fixed words.
type Name string

func (n Name) forms() (whole, public any) { return string(n), string(n) }

// Text returns a text of only the name.
func (n Name) Text() Text { return Text{string(n), string(n)} }

// Number is a number that anybody sees anyway, or of the agent's: not one that a container has
// printed.
type Number int64

func (n Number) forms() (whole, public any) { return int64(n), int64(n) }

// Duration is how long something takes.
type Duration time.Duration

func (d Duration) forms() (whole, public any) { return time.Duration(d), time.Duration(d) }

// Book has the public forms of texts that are kept as strings, by the whole ones. nil is an empty
// one that takes none.
type Book map[string]string

// Note adds a text, if it has a public form, and returns it whole.
func (b Book) Note(t Text) string {
	if b != nil && t.public != Mark && t.public != "" {
		b[t.whole] = t.public
	}
	return t.whole
}

// Text returns the noted text, or a private one.
func (b Book) Text(whole string) Text { return Text{whole, b.Public(whole)} }

// Public returns the public form of a text: nothing, if it was not noted.
func (b Book) Public(whole string) string {
	if whole == "" {
		return ""
	}
	if public, noted := b[whole]; noted {
		return public
	}
	return Mark
}
