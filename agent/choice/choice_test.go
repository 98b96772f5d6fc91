package choice

import "testing"

func TestWordsAreListed(t *testing.T) {
	for _, row := range []struct {
		words Words
		want  string
	}{{nil, ""}, {Words{"a"}, "a"}, {Words{"a", "b"}, "a or b"}, {Words{"a", "b", "c"}, "a, b or c"}} {
		if got := row.words.String(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	if w := (Words{"a", "b"}); !w.Has("b") || w.Has("") || w.Has("a or b") {
		t.Error("a word that is none of them is taken for one")
	}
}
