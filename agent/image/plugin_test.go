package image

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const pluginHead = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"

const onePlugin = pluginHead + `
- name: helper
  matchImages: ["*.reg.io", "reg.io:5000/team"]
  defaultCacheDuration: 10m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get, --quick]
  env: [{name: KIND, value: test}]
`

// plugins loads a configuration whose program helper is a script. Each run adds
// a line to the file runs.
func plugins(t *testing.T, config, script string) (*Plugins, *strings.Builder, func() []string) {
	t.Helper()
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	script = "#!/bin/sh\nread -r request\necho \"$KIND $* $request\" >>" + runs + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "helper"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	p, err := LoadPlugins(filepath.Join(dir, "config.yaml"), dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return p, &log, func() []string {
		b, _ := os.ReadFile(runs)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

// answer is a script that prints a response.
func answer(fields string) string {
	return "cat <<'END'\n" + `{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", ` + fields + "}\nEND\n"
}

const letsIn = `"auth": {"*.reg.io": {"username": "u", "password": "geheim"}}`

func TestAPluginIsAskedAsAKubeletDoes(t *testing.T) {
	p, _, runs := plugins(t, onePlugin, answer(`"cacheKeyType": "Image", `+letsIn))
	got := p.lookup(t.Context(), "eu.reg.io/team/app")
	if len(got) != 1 || got[0] != (Auth{"u", "geheim"}) {
		t.Errorf("%d credentials", len(got))
	}
	want := `test get --quick {"apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"eu.reg.io/team/app","kind":"CredentialProviderRequest"}`
	if all := runs(); len(all) != 1 || all[0] != want {
		t.Errorf("got  %q\nwant %q", all, want)
	}
	if got := p.lookup(t.Context(), "elsewhere.io/x"); len(got) != 0 || len(runs()) != 1 {
		t.Error("asked about an image that is not its own")
	}
	if got := p.lookup(t.Context(), "reg.io:5000/team/x"); len(got) != 0 || len(runs()) != 2 {
		t.Error("credentials for another registry count")
	}
}

func TestAnswersOfAPluginHoldForAWhile(t *testing.T) {
	for _, row := range []struct {
		name, fields string
		runs         int // for a.reg.io/x twice, a.reg.io/y and b.reg.io/x
	}{
		{"for the image", `"cacheKeyType": "Image"`, 3},
		{"for the registry", `"cacheKeyType": "Registry"`, 2},
		{"for all", `"cacheKeyType": "Global"`, 1},
		{"not at all", `"cacheKeyType": "Global", "cacheDuration": "0s"`, 4},
		{"for as long as it says", `"cacheKeyType": "Global", "cacheDuration": "1h"`, 1},
		{"too short", `"cacheKeyType": "Global", "cacheDuration": "1ns"`, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, _, runs := plugins(t, onePlugin, answer(row.fields+", "+letsIn))
			for _, image := range []string{"a.reg.io/x", "a.reg.io/x", "a.reg.io/y", "b.reg.io/x"} {
				if got := p.lookup(t.Context(), image); len(got) != 1 {
					t.Errorf("%d credentials for %s", len(got), image)
				}
			}
			if n := len(runs()); n != row.runs {
				t.Errorf("it ran %d times, want %d", n, row.runs)
			}
		})
	}
}

func TestOneRunAnswersAllWhoAskTheSame(t *testing.T) {
	p, _, runs := plugins(t, onePlugin, "sleep 0.3\n"+answer(`"cacheKeyType": "Image", "cacheDuration": "0s", `+letsIn))
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if got := p.lookup(t.Context(), "a.reg.io/x"); len(got) != 1 {
				t.Errorf("%d credentials", len(got))
			}
		})
	}
	all.Wait()
	if n := len(runs()); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestWhoAskedFirstMayLeave(t *testing.T) {
	hold := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, runs := plugins(t, onePlugin, "[ -e "+hold+" ] && sleep 60\n"+answer(`"cacheKeyType": "Image", `+letsIn))
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { p.lookup(ctx, "a.reg.io/x") })
	until(t, func() bool { return runs()[0] != "" })
	all.Go(func() {
		if got := p.lookup(t.Context(), "a.reg.io/x"); len(got) != 1 {
			t.Errorf("%d credentials", len(got))
		}
	})
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	leave()
	all.Wait()
}

func until(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

func TestAPluginThatFailsIsSaidAndPassedOver(t *testing.T) {
	v1 := `"apiVersion": "credentialprovider.kubelet.k8s.io/v1", `
	for _, row := range []struct{ name, script, said string }{
		{"it exits", "echo first >&2; echo 'no role: https://me:geheim@x/' >&2; exit 3", "exit status 3: no role: https://***@x/"},
		{"it is killed", "kill -9 $$", "signal: killed"},
		{"it takes too long", "sleep 60 & sleep 60", "context deadline exceeded"},
		{"it prints no JSON", "echo geheim", "it did not print a CredentialProviderResponse"},
		{"it prints without end", "yes geheim", "it did not print a CredentialProviderResponse"},
		{"it prints something else", `echo '{"kind": "X", ` + v1 + `"cacheKeyType": "Image"}'`, `it printed a \"X\" of`},
		{"it prints another version", `echo '{"kind": "CredentialProviderResponse", "apiVersion": "v9", "cacheKeyType": "Image"}'`, `of \"v9\", want`},
		{"it does not say for what", answer(letsIn), `cacheKeyType \"\" is none of`},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, log, _ := plugins(t, onePlugin, row.script)
			p.plugins[0].timeout = 20 * time.Second
			if strings.HasPrefix(row.script, "sleep") {
				p.plugins[0].timeout = 100 * time.Millisecond
			}
			if row.name == "it prints without end" {
				p.plugins[0].timeout = 300 * time.Millisecond
				row.said = "context deadline exceeded"
			}
			if got := p.lookup(t.Context(), "a.reg.io/x"); len(got) != 0 {
				t.Errorf("%d credentials", len(got))
			}
			if !strings.Contains(log.String(), row.said) || strings.Contains(log.String(), "geheim") {
				t.Errorf("the log says %s\nwant %s", log, row.said)
			}
		})
	}
}

// A pull is tried again and again; why a provider is of no use does not change with that.
func TestAPluginThatFailsOnAndOnIsSaidOnce(t *testing.T) {
	p, log, _ := plugins(t, onePlugin, "echo no login >&2; exit 3\n")
	for range 3 {
		p.lookup(t.Context(), "a.reg.io/x")
	}
	if n := strings.Count(log.String(), "gives no credentials"); n != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
}

func TestWhatAPluginStartedEndsWithIt(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	p, _, _ := plugins(t, onePlugin, "sleep 60 & echo $! >"+pid+"; wait")
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { p.lookup(ctx, "a.reg.io/x") })
	child := ""
	until(t, func() bool {
		b, _ := os.ReadFile(pid)
		child = strings.TrimSpace(string(b))
		return child != ""
	})
	leave()
	all.Wait()
	until(t, func() bool {
		b, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

func TestConfigurationsOfPlugins(t *testing.T) {
	provider := func(name, match, hold, version, more string) string {
		return fmt.Sprintf("- {name: %s, matchImages: [%s], defaultCacheDuration: %s, apiVersion: %s%s}\n", name, match, hold, version, more)
	}
	const v1 = "credentialprovider.kubelet.k8s.io/v1"
	for _, row := range []struct{ name, file, wrong string }{
		{"good", pluginHead + provider("helper", "reg.io", "0s", v1, ""), ""},
		{"two", pluginHead + provider("helper", "reg.io", "1m", v1, "") + provider("other", "reg.io", "1m", v1+"beta1", ""), ""},
		{"the same twice", pluginHead + provider("helper", "reg.io", "1m", v1, "") + provider("helper", "x.io", "1m", v1, ""), "providers[1]: a provider of this name is there already"},
		{"another kind", "kind: Pod\napiVersion: v1\n", "it is no CredentialProviderConfig of kubelet.config.k8s.io/v1, v1beta1 or v1alpha1"},
		{"an unknown field", pluginHead + provider("helper", "reg.io", "1m", v1, ", colour: red"), "providers[0]: unknown field"},
		{"a path as name", pluginHead + provider("../helper", "reg.io", "1m", v1, ""), "name: must be that of a program in the folder"},
		{"no images", pluginHead + provider("helper", "", "1m", v1, ""), "matchImages: must not be empty"},
		{"a bad image", pluginHead + provider("helper", `"["`, "1m", v1, ""), "providers[0]: matchImages[0]: it is no registry"},
		{"a negative duration", pluginHead + provider("helper", "reg.io", "-1m", v1, ""), "defaultCacheDuration: must be given and not be negative"},
		{"another version", pluginHead + provider("helper", "reg.io", "1m", "v1", ""), `apiVersion: choose credentialprovider.kubelet.k8s.io/v1, v1beta1 or v1alpha1`},
		{"a slip beside a password", pluginHead + provider("helper", "reg.io", "1m", v1, ", env: [{name: P, value: [hunter2]}]"), "a.yml:4:133: providers[0].env[0].value: expected a string, got a list"},
		{"a password that begins with a star", pluginHead + provider("helper", "reg.io", "1m", v1, ", env: [{name: P, value: *hunter2}]"), "not valid YAML: no anchor has this name"},
		{"none", pluginHead, "names none"},
		{"for service accounts", pluginHead + provider("helper", "reg.io", "1m", v1, ", tokenAttributes: {requireServiceAccount: true}"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.yml"), []byte(row.file), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := LoadPlugins(dir, dir, slog.New(slog.DiscardHandler))
			if err == nil && row.wrong != "" || err != nil && (row.wrong == "" || !strings.Contains(err.Error(), row.wrong)) {
				t.Errorf("error %v, want %q", err, row.wrong)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it tells a value: %v", err)
			}
			if row.name == "for service accounts" && len(p.lookup(t.Context(), "reg.io/x")) != 0 {
				t.Error("it is asked")
			}
		})
	}
	for _, args := range [][2]string{{"/etc", ""}, {"", "/bin"}, {"/no/such/file", "/bin"}, {"/etc", "/no/such/dir"}} {
		if _, err := LoadPlugins(args[0], args[1], slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	if p, err := LoadPlugins("", "", nil); p != nil || err != nil {
		t.Errorf("nothing asked for: %v, %v", p, err)
	}
}
