package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

// flags returns those that are given, and no others.
func flags(given map[string]string) func(string) (string, string) {
	return func(name string) (text, by string) {
		text, ok := given[name]
		if ok {
			by = "--" + name
		}
		return text, by
	}
}

func TestEveryFlagWins(t *testing.T) {
	values := map[string]string{"listen": "127.0.0.1:1", "node-ip": "192.0.2.7", "cgroup-driver": "none", "log-level": "WARN", "node-labels": "a=b", "node-name": "edge7", "manifest-url": "http://127.0.0.1/x", "manifest-url-header": "A=b", "managed-runtime": "true"}
	var c Config
	for _, r := range rows(&c) {
		if r.flag == "" {
			continue
		}
		text := values[r.flag]
		if text == "" {
			text = "/x"
		}
		got, _, err := Read(flags(map[string]string{r.flag: text}))
		if err != nil {
			t.Fatal(err)
		}
		now, later := Changed(Default(), got)
		if names := strings.Join(append(now, later...), " "); !strings.Contains(names, r.name) {
			t.Errorf("--%s %s changes %q, want %s", r.flag, text, names, r.name)
		}
	}
}

func TestFlags(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("resolvConf: ''\nnodeLabels: {a: file}\ncgroupDriver: systemd\nmaxPods: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		given map[string]string
		want  func(*Config)
	}{
		{"none", nil, func(*Config) {}},
		{"a path is relative to where the command runs", map[string]string{"root": "r"}, func(c *Config) { c.Root = here + "/r" }},
		{"a path that is empty is the default", map[string]string{"root": "", "resolv-conf": ""}, func(*Config) {}},
		{"no endpoint", map[string]string{"listen": ""}, func(c *Config) { c.Listen = "" }},
		{"a driver decides", map[string]string{"cgroup-driver": "systemd"}, func(c *Config) { c.CgroupDriver = "systemd" }},
		{"no cgroups", map[string]string{"cgroup-driver": "none", "cgroup-root": "a"}, func(c *Config) { c.CgroupDriver, c.CgroupsPerQOS, c.CgroupRoot = "none", false, "/a" }},
		{"programs for credentials", map[string]string{"image-credential-provider-config": "/c", "image-credential-provider-bin-dir": "/b"},
			func(c *Config) { c.CredentialProviders, c.CredentialProviderPrograms = "/c", "/b" }},
		{"over a file", map[string]string{"config": file, "node-labels": "b=flag", "cgroup-driver": "auto", "resolv-conf": "/r"}, func(c *Config) {
			c.NodeLabels, c.FallbackDriver, c.ResolvConf, c.MaxPods = map[string]string{"b": "flag"}, "systemd", "/r", 7
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := Default()
			row.want(&want)
			got, _, err := Read(flags(row.given))
			if err != nil || !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
			}
		})
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	for _, row := range []struct{ flag, text, want string }{
		{"cgroup-driver", "Systemd", `--cgroup-driver "Systemd": choose auto, cgroupfs, systemd or none`},
		{"log-level", "trace", `--log-level "trace": choose debug, info, warn or error`},
		{"node-labels", "bare", `--node-labels "bare": write each label once, as key=value`},
		{"node-labels", "a=1,a=2", `--node-labels "a=2": write each label once, as key=value`},
		{"node-labels", "a b=x", `node label "a b=x": name part must consist of`},
		{"node-labels", "a=x y", "see --node-labels"},
		{"config", "", "read settings: open : no such file or directory"},
	} {
		if _, _, err := Read(flags(map[string]string{row.flag: row.text})); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("--%s %s: %v, want %s", row.flag, row.text, err, row.want)
		}
	}
}

func TestLabelsOfAFlag(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "map[]",
		"disk=ssd":                      "map[disk:ssd]",
		"disk=ssd, example.com/rack=7,": "map[disk:ssd example.com/rack:7]",
		"bare=":                         "map[bare:]",
	} {
		c, _, err := Read(flags(map[string]string{"node-labels": text}))
		if got := fmt.Sprint(c.NodeLabels); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

// A value that is null, or the zero value where that says nothing, is the default.
func TestWhatSaysNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"listen: null", "podNameSuffix: null", "crashLoopBackOff: null", "resolvConf: ~", "enforceNodeAllocatable: null",
		"root: ''", "tlsMinVersion: ''", "cgroupDriver: ''", "maxPods: 0", "podPidsLimit: 0", "registryBurst: 0", "imageMinimumGCAge: 0s", "nodeLabels: {}"} {
		got, wrong := readText(t, t.TempDir(), text, Default())
		if now, later := Changed(Default(), got); wrong != "" || len(now)+len(later) > 0 {
			t.Errorf("%s: %s changes %s %s", text, wrong, now, later)
		}
	}
}

// Sysctls of the pod, and no others, can be allowed.
func TestSysctlsThatCanBeAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"[net.*, kernel.msgmax, kernel/shm*, kernel.sem, fs.mqueue.*]": "",
		"[vm.swappiness]": "the whole machine's",
		"[kernel.*]":      "the whole machine's",
	} {
		if _, wrong := readText(t, t.TempDir(), "allowedUnsafeSysctls: "+text, Default()); (wrong == "") != (want == "") || !strings.Contains(wrong, want) {
			t.Errorf("%s: %s", text, wrong)
		}
	}
}
