package podlog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 500_000_000, time.UTC)
	for _, row := range []struct {
		line   string
		time   time.Time
		stream string
		full   bool
		text   string
	}{
		{"2026-05-04T12:00:00.5Z stdout F a b", at, Stdout, true, "a b"},
		{"2026-05-04T12:00:00.500000000Z stderr P a", at, Stderr, false, "a"},
		{"2026-05-04T14:00:00.5+02:00 stdout F  a ", at, Stdout, true, " a "},
		{"2026-05-04T12:00:00.5Z stdout F", at, Stdout, true, ""},
		{"2026-05-04T12:00:00.5Z stdout P:F:x a", at, Stdout, false, "a"},
		{"2026-05-04T12:00:00.5Z stdout  a", time.Time{}, Stdout, true, "2026-05-04T12:00:00.5Z stdout  a"},
		{"2026-05-04T12:00:00.5Z stdin F a", time.Time{}, Stdout, true, "2026-05-04T12:00:00.5Z stdin F a"},
		{"2026-15-04T12:00:00.5Z stdout F a", time.Time{}, Stdout, true, "2026-15-04T12:00:00.5Z stdout F a"},
		{"2026-05-04T12:00:00.5Z stdout", time.Time{}, Stdout, true, "2026-05-04T12:00:00.5Z stdout"},
		{"", time.Time{}, Stdout, true, ""},
		{"\x00\x00", time.Time{}, Stdout, true, ""},
		{`{"log":"a\n","stream":"stderr","time":"2026-05-04T12:00:00.5Z"}`, at, Stderr, true, "a"},
		{`{"level":"info"}`, time.Time{}, Stdout, true, `{"level":"info"}`},
	} {
		got := parse([]byte(row.line))
		if !got.time.Equal(row.time) || got.stream != row.stream || got.full != row.full || string(got.text) != row.text {
			t.Errorf("%q: %v %s %v %q", row.line, got.time, got.stream, got.full, got.text)
		}
	}
}

// Whatever a file holds, reading it from its end gives the last of the lines
// that reading all of it gives, and nothing of what a container wrote is lost.
func FuzzRead(f *testing.F) {
	f.Add([]byte(script(0, "o:a O:b E:c o:d e:e")), uint8(2))
	f.Add([]byte("x\n\n"+script(0, "E:a")+"2026-05-04T12:00:00.5Z stdout"), uint8(1))
	f.Add([]byte(script(0, "o:a")+strings.Repeat("y", headMax+9)+"\n"), uint8(1))
	f.Add([]byte("2026-05-04T12:0\x00:01Z stdout P b\n2026-05-04T12:0\x00:02Z stderr P c\n"+script(3, "o:d")), uint8(1))
	f.Fuzz(func(t *testing.T, file []byte, n uint8) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/0.log", file, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func(o Options) (lines []string) {
			err := Read(t.Context(), dir, o, func(l Line) error {
				lines = append(lines, fmt.Sprintf("%s %q %v %v", l.Stream, l.Text, l.Partial, l.Continued))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return lines
		}
		all := read(Options{})
		if most := bytes.Count(file, []byte("\n")) + 1; len(all) > most {
			t.Errorf("%d lines of a file with %d", len(all), most)
		}
		tail := read(Options{Tail: ptr(int64(n))})
		if len(tail) > len(all) || len(tail) < min(int(n), len(all)) && plain(file) {
			t.Errorf("the last %d lines are %q of %q", n, tail, all)
		}
		if plain(file) && strings.Join(all[max(len(all)-int(n), 0):], "\n") != strings.Join(tail, "\n") {
			t.Errorf("the last %d lines are %q of %q", n, tail, all)
		}
	})
}

// plain reports whether no line of a file is a part, and the last has its end.
func plain(file []byte) bool {
	for line := range bytes.Lines(file) {
		if e := parse(bytes.TrimSuffix(line, []byte("\n"))); !e.full || !bytes.HasSuffix(line, []byte("\n")) {
			return false
		}
		if len(line) > 0 && (line[0] == 0 || line[0] == '{') {
			return false // its head is not at its beginning
		}
	}
	return true
}
