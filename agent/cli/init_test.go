package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What init writes is taken as it is, and says what comes next.
func TestInitWritesWhatTheAgentTakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	settings, manifest := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "manifests", "hello.yaml")
	typedLine{"init " + dir, []string{
		settings + " is written\n", manifest + " is written\n",
		"monopod doctor --config " + settings, "monopod run --config " + settings + "\n", "monopod ps",
	}, nil, 0}.check(t)
	typedLine{"validate --config " + settings + " " + manifest, []string{"hello"}, nil, 0}.check(t)
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			given = append(given, line)
		}
	}
	want := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: \"" + filepath.Dir(manifest) + "\"\n"
	if got := strings.Join(given, ""); got != want || !strings.Contains(string(text), "#updateWindow:") {
		t.Errorf("the settings that count are\n%s\nwant\n%s", got, want)
	}
	for path, mode := range map[string]os.FileMode{settings: 0o600, manifest: 0o600, filepath.Dir(manifest): os.ModeDir | 0o700} {
		if fi, err := os.Stat(path); err != nil || fi.Mode() != mode {
			t.Errorf("%s is %v (%v), want mode %s", path, fi, err, mode)
		}
	}
}

func TestInitLeavesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	settings := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(settings, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	typedLine{"init " + dir, []string{settings + " is there already, and stays as it is", "hello.yaml is written"}, nil, 0}.check(t)
	if text, err := os.ReadFile(settings); string(text) != "mine" {
		t.Errorf("the file has %q now (%v)", text, err)
	}
	typedLine{"init a b", nil, []string{"init writes one folder"}, 2}.check(t)
	typedLine{"init /proc/none", nil, []string{"/proc/none"}, 1}.check(t)
}

func TestAnEmptyFolderIsMetWithWhatToDo(t *testing.T) {
	dir := t.TempDir()
	said := func() string {
		var out bytes.Buffer
		sayEmpty(slog.New(slog.NewTextHandler(&out, nil)), []string{dir})
		return out.String()
	}
	if text := said(); !strings.Contains(text, "`monopod init` writes a first one") || !strings.Contains(text, "manifests="+dir) {
		t.Errorf("logged of an empty folder: %q", text)
	}
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := said(); text != "" {
		t.Errorf("logged of a folder with a file: %q", text)
	}
}
