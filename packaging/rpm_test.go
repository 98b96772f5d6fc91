package packaging

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rpm calls the scripts of the new version, and then those of the former one, with the number of versions that are
// installed then.
func TestTheScriptsOfTheRPM(t *testing.T) {
	for _, row := range []struct {
		what, script, versions string
		systemd                bool // it runs
		want                   string
	}{
		{"an install has the distribution decide what is enabled", "rpm-post", "1", true, "daemon-reload; preset monopod.service"},
		{"one into the folder of an image, too", "rpm-post", "1", false, "preset monopod.service"},
		{"an upgrade leaves what is enabled", "rpm-post", "2", true, "daemon-reload"},
		{"an upgrade stops no agent", "rpm-preun", "1", true, ""},
		{"and starts it again once the former version is gone", "rpm-postun", "1", true, "daemon-reload; try-restart monopod.service"},
		{"in the folder of an image there is none to start", "rpm-postun", "1", false, ""},
		{"an erasure stops the agent, which no boot starts then", "rpm-preun", "0", true, "--no-reload disable --now monopod.service"},
		{"nor one of an image", "rpm-preun", "0", false, "--no-reload disable monopod.service"},
		{"after an erasure systemd forgets the unit", "rpm-postun", "0", true, "daemon-reload"},
	} {
		t.Run(row.what, func(t *testing.T) {
			dir := t.TempDir()
			running := filepath.Join(dir, "running")
			write(t, filepath.Join(dir, "systemctl"), "#!/bin/sh\necho \"$@\" >>"+dir+"/told\nexit 1\n", 0o755)
			text, err := os.ReadFile(row.script)
			if err != nil {
				t.Fatal(err)
			}
			conf := filepath.Join(dir, "99-monopod.conf") // which the agent makes
			write(t, conf, "[Login]\n", 0o644)
			here := strings.NewReplacer("/run/systemd/system", running, "/etc/systemd/logind.conf.d/99-monopod.conf", conf)
			write(t, filepath.Join(dir, "script"), here.Replace(string(text)), 0o644)
			if row.systemd {
				if err := os.Mkdir(running, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			sh := exec.CommandContext(t.Context(), "/bin/sh", "-e", filepath.Join(dir, "script"), row.versions)
			sh.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			if out, err := sh.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("it fails where systemd refuses: %v: %s", err, out)
			}
			told, _ := os.ReadFile(filepath.Join(dir, "told"))
			if got := strings.ReplaceAll(strings.TrimSpace(string(told)), "\n", "; "); got != row.want {
				t.Errorf("systemd is told %q, want %q", got, row.want)
			}
			_, err = os.Stat(conf)
			if isErased := row.script == "rpm-postun" && row.versions == "0"; isErased != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what the agent told logind: %v", err)
			}
		})
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
