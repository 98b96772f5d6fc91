// Package print writes what commands show: tables, words, colours.
package print

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printIndented prints the table under a key.
func (t *Table) printIndented(w *bytes.Buffer) {
	var lines bytes.Buffer
	t.columns = max(t.columns-2, 0)
	t.Print(&lines)
	for line := range bytes.Lines(lines.Bytes()) {
		w.WriteString("  ")
		w.Write(line)
	}
}

// Table is lines of cells whose columns are as wide as their widest cell.
type Table struct {
	rows    [][]cell
	widths  []int
	columns int // of the terminal that the last cells are wrapped for; 0: no wrapping

	spare []spare // columns that are left out if there is no room, in this order
}

// spare is a column that may be left out.
type spare struct {
	at   int
	head string
}

// cell is one text; color is an SGR code of ECMA-48 such as "32", "" for none.
type cell struct{ Text, Color string }

// plainCells are texts without colour.
func plainCells(texts []string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// add adds a line; an empty cell becomes a dash, so that columns can be counted.
func (t *Table) add(cells ...cell) {
	for i, c := range cells {
		cells[i].Text = cmp.Or(OneLine(c.Text), "-")
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], Width(cells[i].Text))
	}
	t.rows = append(t.rows, cells)
}

// Line adds a line of texts.
func (t *Table) Line(texts ...string) { t.add(plainCells(texts)...) }

const (
	// proseRoom is the least room for a last cell of prose beside the others; with less it is
	// printed below them, behind proseIndent.
	proseRoom   = 24
	proseIndent = 4
	// cutTo is the width to which cells are cut at most, except for prose, to fit into a terminal.
	cutTo = 16
)

// layout is how a table fits its terminal.
type layout struct {
	widths  []int
	gap     int  // between columns
	columns int  // for wrapping the last cell; 0: no wrapping
	indent  int  // of its other lines
	below   bool // it has lines of its own
	broken  bool // there is no room for columns: rows are broken between their cells
}

func (t *Table) layout() layout {
	l := layout{widths: slices.Clone(t.widths), gap: 3}
	last := len(t.widths) - 1
	if t.columns == 0 || l.before(last)+t.widths[last] <= t.columns {
		return l
	}
	l.gap = 1
	prose := t.widths[last] > proseRoom
	switch before := l.before(last); {
	case before+t.widths[last] <= t.columns:
	case prose && before+proseRoom <= t.columns:
		l.columns, l.indent = t.columns, before
	case prose && l.shrink(last, t.columns):
		l.columns, l.indent, l.below = t.columns, proseIndent, true
	case !prose && l.shrink(last+1, t.columns):
	default:
		l.widths, l.gap, l.columns, l.indent, l.below, l.broken = t.widths, 2, t.columns, proseIndent, prose, true
	}
	return l
}

// before returns the width of the first n columns, with the gaps behind them.
func (l *layout) before(n int) (sum int) {
	for _, wide := range l.widths[:n] {
		sum += wide + l.gap
	}
	return sum
}

// shrink makes the widest of the first n columns narrower until they fit, if they can.
func (l *layout) shrink(n, columns int) bool {
	for l.before(n)-l.gap > columns {
		k := slices.Index(l.widths[:n], slices.Max(l.widths[:n]))
		if l.widths[k] <= cutTo {
			return false
		}
		l.widths[k]--
	}
	return true
}

// Print prints the added lines.
func (t *Table) Print(w io.Writer) {
	if len(t.widths) == 0 {
		return
	}
	shown, left := t.narrowed()
	l := shown.layout()
	for _, row := range shown.rows {
		fmt.Fprintln(w, l.line(row))
	}
	if len(left) > 0 {
		fmt.Fprintln(w, wrappedBehind(0, "(no room for "+strings.Join(left, ", ")+": a wider terminal or -o json shows them)", t.columns, proseIndent))
	}
}

// narrowed returns the table without as many of its spare columns as needed for the others to be
// whole, and the names of the omitted ones.
func (t *Table) narrowed() (shown *Table, left []string) {
	shown = t
	for k := range t.spare {
		if shown.isWhole() {
			return shown, left
		}
		shown, left = t.without(t.spare[:k+1]), append(left, t.spare[k].head)
	}
	return shown, left
}

// isWhole reports whether no row is broken and no cell is cut.
func (t *Table) isWhole() bool {
	l := t.layout()
	return !l.broken && slices.Equal(l.widths, t.widths)
}

func (t *Table) without(columns []spare) *Table {
	rest := &Table{columns: t.columns}
	for _, row := range t.rows {
		var cells []cell
		for i, c := range row {
			if !slices.ContainsFunc(columns, func(s spare) bool { return s.at == i }) {
				cells = append(cells, c)
			}
		}
		rest.add(cells...)
	}
	return rest
}

// line is a row, which may take several lines.
func (l *layout) line(row []cell) string {
	var out strings.Builder
	if l.broken {
		parts := make([]string, len(row))
		for i, c := range row {
			parts[i] = c.Text
		}
		between := strings.Repeat(" ", l.gap)
		if !l.below {
			return joined(0, parts, between, l.columns, l.indent)
		}
		indent, last := "\n"+strings.Repeat(" ", l.indent), len(parts)-1
		return joined(0, parts[:last], between, l.columns, l.indent) + indent + wrappedBehind(l.indent, parts[last], l.columns, l.indent)
	}
	for i, c := range row {
		last, text := i == len(row)-1, c.Text
		switch {
		case !last:
			text = cut(text, l.widths[i])
		case l.below:
			text = "\n" + strings.Repeat(" ", l.indent) + wrappedBehind(l.indent, text, l.columns, l.indent)
		case l.columns > 0:
			text = wrappedBehind(l.indent, text, l.columns, l.indent)
		default:
			text = cut(text, l.widths[i])
		}
		pad := strings.Repeat(" ", max(l.widths[i]-Width(text)+l.gap, 0))
		if last || l.below && i == len(row)-2 {
			pad = ""
		}
		if c.Color != "" {
			text = "\x1b[" + c.Color + "m" + text + "\x1b[0m"
		}
		out.WriteString(text + pad)
	}
	return out.String()
}

// Width returns how many columns of a terminal s takes: one for each character but combining
// marks. Wide characters do not occur in Kubernetes' names.
func Width(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if unicode.Is(unicode.Mn, r) {
			n--
		}
	}
	return n
}
