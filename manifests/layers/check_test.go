package layers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFoldersThatAreOneAreRefused(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	must(t, os.MkdirAll(at("usr/below"), 0o755))
	must(t, os.Mkdir(at("etc"), 0o755))
	must(t, os.Symlink("usr", at("link")))
	must(t, os.Symlink("usr/below", at("inside")))
	for _, row := range []struct{ a, b, want string }{
		{"usr", "etc", ""},
		{"usr", "nowhere", ""},
		{"nowhere", "nowhere2", ""},
		{"usr", "usr/", "is given twice"},
		{"nowhere", "nowhere", "is given twice"},
		{"usr", "link", "are one folder"},
		{"usr", "usr/below", "is in"},
		{"usr/below", "usr", "is in"},
		{"usr", "inside", "is in"},
		{"usr", "link/none/deep", "is in"},
		{"usr", "usr2", ""},
	} {
		err := Check([]string{at("etc2"), home + "/" + row.a, home + "/" + row.b})
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s and %s: %v, want %q", row.a, row.b, err, row.want)
		}
	}
}
