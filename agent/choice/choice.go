// Package choice has words of which a person chooses one.
package choice

import (
	"slices"
	"strings"
)

// Words are those that may be chosen, in the order in which they are listed.
type Words []string

// Has reports whether a word may be chosen.
func (w Words) Has(word string) bool { return slices.Contains(w, word) }

// String lists them: "a, b or c".
func (w Words) String() string {
	if len(w) < 2 {
		return strings.Join(w, "")
	}
	last := len(w) - 1
	return strings.Join(w[:last], ", ") + " or " + w[last]
}
