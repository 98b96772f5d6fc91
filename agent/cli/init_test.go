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
	settings, folder := filepath.Join(dir, "config.yaml"), filepath.Join(t.TempDir(), "pods")
	mine := func(text string) {
		t.Helper()
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hello := filepath.Join(folder, "hello.yaml")
	mine("staticPodPath: " + folder + "\n")
	typedLine{"init " + dir, []string{settings + " is there already, and stays as it is\n", hello + " is written\n"}, nil, 0}.check(t)
	if text, err := os.ReadFile(settings); string(text) != "staticPodPath: "+folder+"\n" {
		t.Errorf("the file has %q now (%v)", text, err)
	}
	if _, err := os.Stat(hello); err != nil {
		t.Error(err)
	}
	typedLine{"init " + dir, []string{hello + " is there already, and stays as it is\n"}, nil, 0}.check(t)
	mine("mine")
	typedLine{"init " + dir, nil, []string{"nothing is written", settings}, 1}.check(t)
	mine("staticPodPath: \"\"\n")
	typedLine{"init " + dir, nil, []string{"nothing is written", settings, "staticPodPath"}, 1}.check(t)
	one, missing := filepath.Join(folder, "hello.yaml"), filepath.Join(t.TempDir(), "pods.yaml")
	for _, file := range []string{one, missing} {
		mine("staticPodPath: " + file + "\n")
		typedLine{"init " + dir, nil, []string{"nothing is written", "one file", file, "staticPodPath"}, 1}.check(t)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("init made a folder where the settings have a file (%v)", err)
	}
	if err := os.Mkdir(missing, 0o700); err != nil {
		t.Fatal(err)
	}
	typedLine{"init " + dir, []string{filepath.Join(missing, "hello.yaml") + " is written\n"}, nil, 0}.check(t) // a name tells nothing of what is there
	if _, err := os.Stat(filepath.Join(dir, "manifests")); !os.IsNotExist(err) {
		t.Errorf("init made a folder of which the settings know nothing (%v)", err)
	}
	typedLine{"init a b", nil, []string{"init writes one folder"}, 2}.check(t)
	typedLine{"init /proc/none", nil, []string{"/proc/none"}, 1}.check(t)
}

func TestAnEmptyFolderIsMetWithWhatToDo(t *testing.T) {
	dir := t.TempDir()
	folder, settings := filepath.Join(dir, "manifests"), filepath.Join(dir, "config.yaml")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	said := func(of string) string {
		var out bytes.Buffer
		sayEmpty(slog.New(slog.NewTextHandler(&out, nil)), []string{of}, settings)
		return out.String()
	}
	if text := said(folder); !strings.Contains(text, "`monopod init "+dir+"` writes a first one") || !strings.Contains(text, "manifests="+folder) {
		t.Errorf("logged of an empty folder: %q", text)
	}
	other := t.TempDir()
	if text := said(other); !strings.Contains(text, "is empty") || strings.Contains(text, "init") {
		t.Errorf("logged of an empty folder into which init does not write: %q", text)
	}
	if err := os.WriteFile(settings, []byte("staticPodPath: "+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := said(other); !strings.Contains(text, "`monopod init "+dir+"` writes a first one") {
		t.Errorf("logged of an empty folder of the settings: %q", text)
	}
	if err := os.WriteFile(filepath.Join(other, "web.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := said(other); text != "" {
		t.Errorf("logged of a folder with a file: %q", text)
	}
}
