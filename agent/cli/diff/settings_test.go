package diff

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// One of the agent's folders is compared with all of them, in their order.
func TestOneOfSeveralFoldersIsComparedWithTheOthers(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	for _, dir := range []string{"usr", "etc", "other"} {
		if err := os.Mkdir(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("etc", at("link")); err != nil {
		t.Fatal(err)
	}
	file := at("web.yaml")
	for _, row := range []struct {
		args, own, want []string
		isOwn           bool
	}{
		{[]string{at("other"), file}, []string{at("usr"), at("etc")}, []string{at("other"), file}, false},
		{[]string{at("link"), file}, []string{at("usr"), at("etc")}, []string{file, at("usr"), at("etc")}, true},
		{[]string{at("etc"), at("usr")}, []string{at("usr"), at("etc")}, []string{at("usr"), at("etc")}, true},
		{[]string{at("link")}, []string{at("etc")}, []string{at("link")}, true},
		{[]string{at("other")}, nil, []string{at("other")}, false},
	} {
		got, isOwn := WithOthers(row.args, row.own)
		if !slices.Equal(got, row.want) || isOwn != row.isOwn {
			t.Errorf("%v of an agent with %v: %v, %v", row.args, row.own, got, isOwn)
		}
	}
}
