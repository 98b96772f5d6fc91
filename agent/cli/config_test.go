package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/config"
)

// set runs settings as `monopod run` would with those arguments; FILE is a file
// with that text.
func set(t *testing.T, text string, args ...string) (cfg config.Config, log string, err error) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for k := range args {
		args[k] = strings.Replace(args[k], "FILE", path, 1)
	}
	var b bytes.Buffer
	app := &cli.App{Commands: []*cli.Command{{Name: "run", Flags: runFlags(), Action: func(c *cli.Context) (err error) {
		cfg, err = settings(c, slog.New(slog.NewTextHandler(&b, nil)))
		return err
	}}}}
	err = command.Execute(t.Context(), app, append([]string{"run"}, args...))
	return cfg, b.String(), err
}

func TestSettings(t *testing.T) {
	const file = "staticPodPath: /file\nlisten: 127.0.0.1:1\nresolvConf: ''\nnodeLabels: {a: file}\nmaxPods: 7\ncgroupDriver: systemd\n"
	for _, row := range []struct {
		name string
		args []string
		want func(config.Config) bool
	}{
		{"without a file the endpoint is the default one", nil, func(c config.Config) bool { return c.Listen == "127.0.0.1:10255" && len(c.Manifests) == 0 }},
		{"flags alone", []string{"--manifests", "/flag", "--listen", ""}, func(c config.Config) bool { return slices.Equal(c.Manifests, []string{"/flag"}) && c.Listen == "" }},
		{"the file alone", []string{"--config", "FILE"}, func(c config.Config) bool {
			return slices.Equal(c.Manifests, []string{"/file"}) && c.Listen == "127.0.0.1:1" && c.ResolvConf == "" && c.NodeLabels["a"] == "file" && c.MaxPods == 7
		}},
		{"several folders", []string{"--config", "FILE", "--manifests", "/low,er", "--manifests", "/higher"}, func(c config.Config) bool {
			return slices.Equal(c.Manifests, []string{"/low,er", "/higher"})
		}},
		{"flags win over the file", []string{"--config", "FILE", "--manifests", "/flag", "--listen", "", "--node-labels", "b=flag", "--cgroup-driver", "cgroupfs"}, func(c config.Config) bool {
			return slices.Equal(c.Manifests, []string{"/flag"}) && c.Listen == "" && c.NodeLabels["a"] == "" && c.NodeLabels["b"] == "flag" && c.CgroupDriver == "cgroupfs" && c.MaxPods == 7
		}},
		{"a flag wins that says the default", []string{"--config", "FILE", "--listen", "127.0.0.1:10255", "--resolv-conf", "/etc/resolv.conf"}, func(c config.Config) bool {
			return c.Listen == "127.0.0.1:10255" && c.ResolvConf == "/etc/resolv.conf" && c.ResolvConf != ""
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if cfg, _, err := set(t, file, row.args...); err != nil || !row.want(cfg) {
				t.Errorf("%+v, %v", cfg, err)
			}
		})
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	if _, _, err := set(t, "maxPod: 3\n", "--config", "FILE"); err == nil || !strings.Contains(err.Error(), `c.yaml:1:1: unknown field: did you mean "maxPods"?`) {
		t.Errorf("an unknown field: %v", err)
	}
	if _, log, err := set(t, "syncFrequency: 1m\n", "--config", "FILE"); err != nil || !strings.Contains(log, "c.yaml:1:16: syncFrequency: has no effect here") {
		t.Errorf("what only a kubelet heeds: %v, log %s", err, log)
	}
	if _, _, err := set(t, "", "--config", ""); err == nil {
		t.Error("a file without a name was read")
	}
}

// Without manifests the settings are what is checked.
func TestValidateChecksSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	for _, l := range []typedLine{
		{"validate --config " + file("good.yaml", "maxPods: 7\n"), []string{"ok   " + dir + "/good.yaml (settings)"}, nil, 0},
		{"validate --config " + file("odd.yaml", "syncFrequency: 1m\n"), []string{"ok"}, []string{"odd.yaml:1:16: ", "has no effect here"}, 0},
		{"validate --config " + file("bad.yaml", "maxPod: 7\n"), nil, []string{`bad.yaml:1:1: unknown field: did you mean "maxPods"?`}, 2},
		{"validate --config " + file("time.yaml", "imageMinimumGCAge: 5x\n"), nil, []string{"time.yaml:1:20: imageMinimumGCAge: ", "not time: ", "duration"}, 2},
		{"validate --config " + file("number.yaml", "maxPods: many\n"), nil, []string{"number.yaml:1:10: maxPods: ", "not cannot unmarshal", "not strconv"}, 2},
		{"validate --config " + file("text.yaml", "listen: [1\n"), nil, []string{"text.yaml:", "not yaml: "}, 2},
		{"validate --config " + dir + "/none.yaml", nil, []string{"none.yaml", "no such file"}, 2},
		{"validate --config " + file("static.yaml", "memoryManagerPolicy: Static\n"), nil, []string{"static.yaml:1:22: memoryManagerPolicy: no container gets memory nodes of its own"}, 2},
		{"validate --config " + file("open.yaml", "staticPodURLHeader: {A: [hunter2]}\n"), nil, []string{"open.yaml:1:1: staticPodURLHeader: others than its owner can open the file (mode 0644): chmod 600 " + dir + "/open.yaml", "not hunter2"}, 2},
		{"validate", nil, []string{"validate what?", "--config"}, 2},
	} {
		l.check(t)
	}
}

// Errors name a setting as the person gave it.
func TestErrorsOfTLSNameWhatWasGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("tlsCertFile: /c\nstaticPodPath: /m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, l := range []typedLine{
		{"run --manifests /m --tls-cert-file /c", nil, []string{"give both --tls-cert-file and --tls-private-key-file, or none"}, 2},
		{"run --config " + file, nil, []string{"give both tlsCertFile and tlsPrivateKeyFile, or none"}, 2},
		{"run --tls-private-key-file= --config " + file, nil, []string{"give both tlsCertFile and --tls-private-key-file, or none"}, 2},
		{"run", nil, []string{"no manifests given: say in which folder they are with --manifests DIR"}, 2},
	} {
		l.check(t, "--root", t.TempDir(), "--node-name", "n")
	}
}

// The docs of a setting name its flag: each of these is one of `monopod run`.
func TestTheFlagsOfSettingsExist(t *testing.T) {
	flags := map[string]bool{}
	for _, f := range runFlags() {
		flags["--"+f.Names()[0]] = true
	}
	for _, s := range config.Settings() {
		if s.Flag != "" && !flags[s.Flag] {
			t.Errorf("%s has the flag %s, which `monopod run` does not have", s.Name, s.Flag)
		}
	}
}
