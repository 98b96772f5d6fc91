// Package print writes what commands show: tables, words, colours.
package print

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
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
	columns int // of the terminal that the last cells are wrapped for; 0: they are not
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
	// proseRoom is the least room for a last cell of prose beside the others; where
	// there is less it goes below them, behind proseIndent.
	proseRoom   = 24
	proseIndent = 4
)

// layout says how far columns stand apart, and how many the last cells are wrapped
// to behind how many others; below: on lines of their own. Cells are not cut: on a
// screen that is too narrow for all others, the terminal breaks the line.
func (t *Table) layout() (gap, columns, indent int, below bool) {
	gap = 3
	if t.columns == 0 || len(t.widths) == 0 {
		return gap, 0, 0, false
	}
	last := len(t.widths) - 1
	before := func() (sum int) {
		for _, wide := range t.widths[:last] {
			sum += wide + gap
		}
		return sum
	}
	if before()+t.widths[last] > t.columns {
		gap = 1
	}
	switch before := before(); {
	case t.widths[last] <= proseRoom || before+t.widths[last] <= t.columns:
		return gap, 0, 0, false
	case before+proseRoom > t.columns:
		return gap, t.columns, proseIndent, true
	default:
		return gap, t.columns, before, false
	}
}

// Print prints the lines that were added.
func (t *Table) Print(w io.Writer) {
	gap, columns, indent, below := t.layout()
	for _, row := range t.rows {
		for i, c := range row {
			pad := strings.Repeat(" ", t.widths[i]-Width(c.Text)+gap)
			if i == len(row)-1 {
				c.Text, pad = wrappedBehind(indent, c.Text, columns, indent), "\n"
			} else if below && i == len(row)-2 {
				pad = "\n" + strings.Repeat(" ", indent)
			}
			if c.Color != "" {
				c.Text = "\x1b[" + c.Color + "m" + c.Text + "\x1b[0m"
			}
			fmt.Fprint(w, c.Text, pad)
		}
	}
}

// Width is how many columns of a terminal s takes: one for each character but
// combining marks. Wide characters do not occur in Kubernetes' names.
func Width(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if unicode.Is(unicode.Mn, r) {
			n--
		}
	}
	return n
}
