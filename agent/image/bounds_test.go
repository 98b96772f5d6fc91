package image

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tooLarge = "it is larger than 1048576 bytes"

// padded writes a file that is too large, and makes sense but for that.
func padded(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text+strings.Repeat("\n", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCredentialFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	k := &Keyring{Root: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	text := `{"auths": {"r.io": {"username": "u", "password": "p"}}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := k.lookup(t.Context(), "r.io/x"); len(got) != 1 {
		t.Fatalf("found %v in a file of few bytes", got)
	}
	padded(t, filepath.Join(dir, "config.json"), text)
	if got := k.lookup(t.Context(), "r.io/x"); len(got) != 0 || !strings.Contains(log.String(), tooLarge) {
		t.Errorf("found %v, log %q", got, log.String())
	}
}

func TestConfigurationsOfPluginsAreBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yml")
	if err := os.WriteFile(filepath.Join(dir, "helper"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	padded(t, path, onePlugin)
	if _, err := LoadPlugins(path, dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), path+": "+tooLarge) {
		t.Errorf("error %v", err)
	}
}
