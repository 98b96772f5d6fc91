package poduid

import (
	"strings"
	"testing"
)

func TestWhatAUIDMayBe(t *testing.T) {
	for uid, want := range map[string]bool{
		"0123456789abcdef0123456789abcdef":     true,
		"1b4e28ba-2fa1-11d2-883f-0016d3cca427": true,
		"my-own-uid":                           true,
		"A--B":                                 true,
		"-rf":                                  true,
		"a-":                                   true,
		"-":                                    true,
		strings.Repeat("a", 63):                true,
		strings.Repeat("a", 64):                false,
		"":                                     false,
		".":                                    false,
		"..":                                   false,
		"a.b":                                  false,
		"a_b":                                  false,
		"a/b":                                  false,
		"../x":                                 false,
		"a b":                                  false,
		"a\n":                                  false,
		"a\x00":                                false,
		"é":                                    false,
	} {
		if got := Valid(uid); got != want {
			t.Errorf("%q: %v", uid, got)
		}
	}
}
