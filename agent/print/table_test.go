package print

import (
	"strings"
	"testing"
)

func TestTablesFitTheirTerminal(t *testing.T) {
	names := [][]string{{"NAME", "READY", "AGE"}, {"a-name-that-is-long-and-has-an-end", "1/1", "3s"}, {"b", "0/1", "-"}}
	prose := [][]string{{"TYPE", "OBJECT", "MESSAGE"}, {"Warning", "pod/a-name-that-is-long", "it does not do what it should do, and says so"}}
	for _, row := range []struct {
		name    string
		columns int
		rows    [][]string
		want    string
	}{
		{"in a pipe", 0, prose, `
TYPE      OBJECT                    MESSAGE
Warning   pod/a-name-that-is-long   it does not do what it should do, and says so`},
		{"with room", 90, prose, `
TYPE      OBJECT                    MESSAGE
Warning   pod/a-name-that-is-long   it does not do what it should do, and says so`},
		{"prose beside the others", 60, prose, `
TYPE    OBJECT                  MESSAGE
Warning pod/a-name-that-is-long it does not do what it
                                should do, and says so`},
		{"prose below them", 30, prose, `
TYPE    OBJECT
    MESSAGE
Warning pod/a-name-…at-is-long
    it does not do what it
    should do, and says so`},
		{"a name that is cut", 30, names, `
NAME                 READY AGE
a-name-tha…as-an-end 1/1   3s
b                    0/1   -`},
		{"no room for columns", 20, names, `
NAME  READY  AGE
a-name-that-is-long-and-has-an-end
    1/1  3s
b  0/1  -`},
		{"prose and no room", 20, prose, `
TYPE  OBJECT
    MESSAGE
Warning  pod/a-name-that-is-long
    it does not do
    what it should
    do, and says so`},
	} {
		table := &Table{columns: row.columns}
		for _, cells := range row.rows {
			table.Line(cells...)
		}
		var out strings.Builder
		table.Print(&out)
		if want := strings.TrimPrefix(row.want, "\n") + "\n"; out.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, out.String(), want)
		}
	}
}

func TestTextIsBrokenBetweenWords(t *testing.T) {
	for _, row := range []struct {
		text            string
		columns, indent int
		want            string
	}{
		{"one two three", 0, 2, "one two three"},
		{"one two three", 13, 2, "one two three"},
		{"one two three", 8, 2, "one two\n  three"},
		{"  Image ID:  a-digest-that-is-far-too-long for it", 20, 4, "  Image ID:  a-digest-that-is-far-too-long\n    for it"},
	} {
		if got := wrapped(row.text, row.columns, row.indent); got != row.want {
			t.Errorf("%q to %d: %q, want %q", row.text, row.columns, got, row.want)
		}
	}
}
