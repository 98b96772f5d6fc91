package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheRuntimeIsKnownUntilTheNextBoot(t *testing.T) {
	root := &Root{Dir: t.TempDir()}
	one, two, unknown := Boot{ID: "one"}, Boot{ID: "two"}, Boot{}
	want := func(boot Boot, endpoint string) {
		t.Helper()
		if got := UsedRuntime(root.Dir, boot); got != endpoint {
			t.Errorf("in boot %q: %q, want %q", boot.ID, got, endpoint)
		}
	}
	keep := func(endpoint string, boot Boot) {
		t.Helper()
		if err := root.KeepRuntime(endpoint, boot); err != nil {
			t.Fatal(err)
		}
	}
	want(one, "")
	keep("unix:///run/a b.sock", one)
	want(one, "unix:///run/a b.sock")
	want(two, "")
	keep("unix:///run/c.sock", two)
	want(two, "unix:///run/c.sock")
	want(one, "")
	keep("unix:///run/c.sock", unknown)
	want(unknown, "")
	for _, damaged := range []string{"", "\x00\x00", "two"} {
		if err := os.WriteFile(filepath.Join(root.Dir, runtimeFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		want(two, "")
	}
}
