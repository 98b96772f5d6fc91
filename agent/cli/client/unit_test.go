package client

import (
	"os"
	"path/filepath"
	"testing"
)

// Who is told to look for the agent is told of its unit where there is one.
func TestWhereToLookForTheAgent(t *testing.T) {
	for dir, want := range map[string]string{
		"":                   "is `monopod run` running?",
		"etc/systemd":        "is `monopod run` running?",
		"etc/systemd/system": "`systemctl status monopod` says more",
		"lib/systemd/system": "`systemctl status monopod` says more",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "monopod.service"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := whereToLook(root); got != want {
			t.Errorf("with a unit in %q: %s", dir, got)
		}
	}
}
