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
		{"it fits", 4, "ESC[HaESC[K\nbESC[K\ncESC[K\nESC[J"},
		{"its last line would scroll", 3, "ESC[HaESC[K\n(2 more lines)ESC[K\nESC[J"},
		{"the size is not known", 0, "ESC[HaESC[K\nbESC[K\ncESC[K\nESC[J"},
	} {
		if got := strings.ReplaceAll(string(InPlace([]byte("a\nb\nc\n"), row.rows)), "\x1b", "ESC"); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
