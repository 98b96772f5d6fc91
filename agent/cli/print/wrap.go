package print

import "strings"

// wrapped breaks text between words so that its lines fit into so many columns, all
// but the first behind an indent. A word that is longer stays whole, for it may be
// copied; 0 columns: nothing is broken.
func wrapped(text string, columns, indent int) string { return wrappedBehind(0, text, columns, indent) }

// wrappedBehind is wrapped of a text whose first line has something before it that
// takes at columns.
func wrappedBehind(at int, text string, columns, indent int) string {
	if columns <= 0 || at+Width(text) <= columns {
		return text
	}
	var out strings.Builder
	for k, word := range strings.Split(text, " ") {
		wide := Width(word)
		switch {
		case k == 0:
		case at+1+wide > columns:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += wide
	}
	return out.String()
}
