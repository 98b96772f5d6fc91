package podlog

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTextAtTheEndOfALog(t *testing.T) {
	at := "2026-01-01T00:00:00Z stderr "
	for _, row := range []struct{ name, file, want string }{
		{"nothing", "", ""},
		{"lines", at + "F one\n" + at + "F two\n", "one\ntwo\n"},
		{"parts of a line", at + "P on\n" + at + "F e\n", "one\n"},
		{"a line that has not ended", at + "F one\n" + at + "F tw", "one\ntw"},
		{"an empty line without its last space", at + "F one\n" + at + "F\n" + at + "F two\n", "one\n\ntwo\n"},
		{"Docker's form", `{"log":"bye\n","stream":"stderr","time":"2026-01-01T00:00:00Z"}` + "\n", "bye\n"},
		{"more lines than asked for", strings.Repeat(at+"F x\n", 2000) + at + "F y\n", "x\nx\ny\n"},
		{"more bytes than asked for", at + "F " + strings.Repeat("x", 90_000) + "\n", strings.Repeat("x", 9) + "\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"0.log": row.file})
			if got := Last(filepath.Join(dir, "0.log"), 3, 10); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
