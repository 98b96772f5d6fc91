package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// table is lines of cells whose columns are as wide as their widest cell.
type table struct {
	rows   [][]cell
	widths []int
}

// cell is one text; color is an SGR code of ECMA-48 such as "32", "" for none.
type cell struct{ text, color string }

func plainCells(texts []string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	return cells
}

// add adds a line; an empty cell becomes a dash, so that columns can be counted.
func (t *table) add(cells ...cell) {
	for i, c := range cells {
		cells[i].text = cmp.Or(oneLine(c.text), "-")
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], width(cells[i].text))
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer) {
	for _, row := range t.rows {
		for i, c := range row {
			pad := strings.Repeat(" ", t.widths[i]-width(c.text)+3)
			if i == len(row)-1 {
				pad = "\n"
			}
			if c.color != "" {
				c.text = "\x1b[" + c.color + "m" + c.text + "\x1b[0m"
			}
			fmt.Fprint(w, c.text, pad)
		}
	}
}

// width is how many columns of a terminal s takes: one for each character but
// combining marks. Wide characters do not occur in Kubernetes' names.
func width(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if unicode.Is(unicode.Mn, r) {
			n--
		}
	}
	return n
}

// oneLine makes text from elsewhere fit to print: one line, and nothing that
// could command the terminal.
func oneLine(s string) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	return strings.Join(strings.Fields(strings.Map(clean, s)), " ")
}
