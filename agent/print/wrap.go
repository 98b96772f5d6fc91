package print

import "strings"

// wrapped breaks text between words so that its lines fit into so many columns, all but the first
// behind an indent. A word that fits into no line stays where it is and whole, for it may be
// copied; 0 columns: nothing is broken.
func wrapped(text string, columns, indent int) string { return wrappedBehind(0, text, columns, indent) }

// Wrap breaks each line of text between words for a terminal of so many columns.
func Wrap(text string, columns int) string {
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines[k] = wrapped(line, columns, indent+2)
	}
	return strings.Join(lines, "\n")
}

// wrappedBehind is wrapped for a text whose first line starts behind something that takes at
// columns.
func wrappedBehind(at int, text string, columns, indent int) string {
	if columns <= 0 || at+Width(text) <= columns {
		return text
	}
	bare := strings.TrimLeft(text, " ")
	return text[:len(text)-len(bare)] + joined(at+len(text)-len(bare), strings.Split(bare, " "), " ", columns, indent)
}

// joined joins parts, in as many lines as wrapped does.
func joined(at int, parts []string, between string, columns, indent int) string {
	var out strings.Builder
	for k, part := range parts {
		wide := Width(part)
		switch {
		case k == 0:
		case at+len(between)+wide > columns && indent+wide <= columns:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			out.WriteString(between)
			at += len(between)
		}
		out.WriteString(part)
		at += wide
	}
	return out.String()
}

// cut shortens text in its middle, for names differ at their ends.
func cut(text string, wide int) string {
	r := []rune(text)
	if Width(text) <= wide || len(r) <= wide {
		return text
	}
	tail := (wide - 1) / 2
	return string(r[:wide-1-tail]) + "…" + string(r[len(r)-tail:])
}
