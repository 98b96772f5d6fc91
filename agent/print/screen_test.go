package print

import (
	"strings"
	"testing"
)

func TestAScreenIsOverwritten(t *testing.T) {
	for _, row := range []struct {
		name string
		rows int
		want string
	}{
		{"it fits", 4, "ESC[?7lESC[HESC[Ka\nESC[Kb\nESC[Kc\nESC[KESC[JESC[?7h"},
		{"its last line would scroll", 3, "ESC[?7lESC[HESC[Ka\nESC[K(2 more lines)\nESC[KESC[JESC[?7h"},
		{"the size is not known", 0, "ESC[?7lESC[HESC[Ka\nESC[Kb\nESC[Kc\nESC[KESC[JESC[?7h"},
	} {
		if got := strings.ReplaceAll(string(InPlace([]byte("a\nb\nc\n"), row.rows)), "\x1b", "ESC"); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
