package clip

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsAreClippedBetweenRunes(t *testing.T) {
	for _, row := range []struct{ text, head, tail string }{
		{"", "", ""},
		{" a\n", "a", "a"},
		{"abcdefgh", "abcde", "defgh"},
		{"\u00e9\u00e9\u00e9\u00e9", "\u00e9\u00e9", "\u00e9\u00e9"},
		{"a\xffb", "ab", "ab"},
		{strings.Repeat("\x80", 100), "", ""},
	} {
		if head, tail := Head(row.text, 5), Tail(row.text, 5); head != row.head || tail != row.tail || !utf8.ValidString(head+tail) {
			t.Errorf("%q: %q, %q", row.text, head, tail)
		}
	}
}

func TestALongErrorStaysWhatItIs(t *testing.T) {
	long := fmt.Errorf("%s: %w", strings.Repeat("x", 100), io.EOF)
	if err := Error(long, 10); err.Error() != "xxxxxxxxxx" || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if Error(io.EOF, 10) != io.EOF || Error(nil, 10) != nil {
		t.Error("a short one is another")
	}
}
