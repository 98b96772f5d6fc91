package print

import (
	"slices"
	"testing"
)

func TestPrefixesHaveOneWidth(t *testing.T) {
	names := []string{"web/nginx", "db/é"}
	if got, want := Prefixes(names, false), []string{"web/nginx | ", "db/é      | "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Prefixes(names[1:], true), []string{"\x1b[36mdb/é |\x1b[0m "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
