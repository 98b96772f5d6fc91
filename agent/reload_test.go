package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/status"
	"monopod/manifests/decode"
)

// reloaded is a reloader on a file, and what came of reading it.
type reloaded struct {
	*reloader
	log    bytes.Buffer
	called []string // who was told
}

func newReloaded(t *testing.T, text string) *reloaded {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	r := &reloaded{}
	log := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(context.Background()) })
	base := config.Default()
	base.Manifests, base.NodeName = "/m", "n"
	told := func(who string, what ...any) {
		r.called = append(r.called, strings.TrimSpace(fmt.Sprintln(append([]any{who}, what...)...)))
	}
	r.reloader = &reloader{
		from: Reread{File: path, Read: func() (config.Config, []decode.Problem, error) { return config.ReadFile(path, base) }},
		live: &atomic.Pointer[config.Config]{}, store: store, log: log, level: &slog.LevelVar{},
		logs:   func(c logs.Config) { told("logs", c.MaxSize, c.MaxFiles) },
		images: func(l image.Limits) { told("images", l.High, l.Low) },
		rate:   func(qps, burst int) { told("rate", qps, burst) },
		pods:   func() { told("pods") },
		node:   func() { told("node") },
		hosts:  func() { told("hosts") },
		telling: func() func() {
			told("reloading")
			return func() { told("reloaded") }
		},
	}
	r.write(t, text)
	c, _, err := config.ReadFile(path, base)
	if err == nil {
		c, err = complete(c, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.live.Store(&c)
	return r
}

func (r *reloaded) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.from.File, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// said returns the settings that a line of the log names.
func (r *reloaded) said(words string) string {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, words) {
			_, names, _ := strings.Cut(line, "settings=")
			return strings.Trim(strings.TrimSpace(names), `"`)
		}
	}
	return ""
}

func TestWhatCountsAtOnceAndWhatAfterARestart(t *testing.T) {
	rows := []struct {
		name, before, after string
		called              string
		counts, later       string
		want                func(config.Config) bool
	}{
		{"nothing", "maxPods: 9", "maxPods: 9 # as before", "", "", "", func(c config.Config) bool { return c.MaxPods == 9 }},
		{"logs", "", "containerLogMaxSize: 1Mi\ncontainerLogMaxFiles: 3", "logs 1048576 3", "containerLogMaxSize, containerLogMaxFiles", "",
			func(c config.Config) bool { return c.LogMaxSize.Value() == 1<<20 && c.LogMaxFiles == 3 }},
		{"back to the default", "containerLogMaxFiles: 3", "", "logs 10485760 5", "containerLogMaxFiles", "", func(c config.Config) bool { return c.LogMaxFiles == 5 }},
		{"images", "", "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60", "images 70 60", "imageGCHighThresholdPercent, imageGCLowThresholdPercent", "",
			func(c config.Config) bool { return c.ImageGCHigh == 70 }},
		{"a rate of pulls", "", "registryPullQPS: 3", "rate 3 10", "registryPullQPS", "", func(c config.Config) bool { return c.PullQPS == 3 }},
		{"a back-off", "", "crashLoopBackOff: {maxContainerRestartPeriod: 20s}", "pods", "crashLoopBackOff.maxContainerRestartPeriod", "",
			func(c config.Config) bool { return c.BackOffMax == 20*time.Second }},
		{"dead containers", "", "deadContainersPerContainer: 3", "pods", "deadContainersPerContainer", "", func(c config.Config) bool { return c.DeadContainers == 3 }},
		{"volumes", "", "keepTerminatedPodVolumes: true", "pods", "keepTerminatedPodVolumes", "", func(c config.Config) bool { return c.KeepEndedVolumes }},
		{"hosts", "", "podHosts: true", "hosts", "podHosts", "", func(c config.Config) bool { return c.PodHosts }},
		{"labels and room", "", "nodeLabels: {disk: ssd}\nmaxPods: 7", "pods|node|pods|node", "nodeLabels, maxPods", "",
			func(c config.Config) bool { return c.NodeLabels["disk"] == "ssd" && c.MaxPods == 7 }},
		{"places", "root: /a", "root: /b\nstaticPodPath: /n", "", "", "staticPodPath, root", func(c config.Config) bool { return c.Root == "/a" && c.Manifests == "/m" }},
		{"both", "", "clusterDomain: c\nregistryBurst: 2", "rate 0 2", "registryBurst", "clusterDomain",
			func(c config.Config) bool { return c.ClusterDomain == "" && c.PullBurst == 2 }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newReloaded(t, row.before)
			r.write(t, row.after)
			r.asked()
			if got := strings.Join(r.called, "|"); got != row.called {
				t.Errorf("told %q, want %q", got, row.called)
			}
			if got := r.said("settings applied"); got != row.counts {
				t.Errorf("%q applied, want %q", got, row.counts)
			}
			if got := r.said("after a restart"); got != row.later {
				t.Errorf("%q need a restart, want %q", got, row.later)
			}
			if c := *r.live.Load(); !row.want(c) {
				t.Errorf("what counts now: %+v", c)
			}
			shown := r.store.Manifests().Settings
			if later := row.later != ""; later != (len(shown) == 1) || later && (!shown[0].Warning || !strings.HasSuffix(shown[0].Message, ": "+row.later)) {
				t.Errorf("shown: %v", shown)
			}
			r.called = nil
			r.write(t, row.before) // what waited for a restart does not any more
			r.asked()
			if shown := r.store.Manifests().Settings; len(shown) > 0 {
				t.Errorf("as before, shown: %v", shown)
			}
			if row.called == "" && len(r.called) > 0 {
				t.Errorf("told again: %s", r.called)
			}
		})
	}
}

func TestTheLevelOfTheLogFollows(t *testing.T) {
	r := newReloaded(t, "")
	for text, want := range map[string]slog.Level{"logLevel: debug": slog.LevelDebug, "logLevel: error": slog.LevelError} {
		r.write(t, text)
		if r.asked(); r.level.Level() != want {
			t.Errorf("%s: %s", text, r.level.Level())
		}
	}
}

// A file that makes no sense changes nothing and is shown until it does.
func TestABadFileKeepsTheSettings(t *testing.T) {
	r := newReloaded(t, "maxPods: 9\n")
	rows := []struct{ text, want string }{
		{"maxPods: 3\nregistryPullQPS: -1\nroot: 7\n", "F:2:18: registryPullQPS: -1: must not be negative|F:3:7: root: expected a string, got a number (7): put it in quotes, \"7\""},
		{"maxPods: 3\ncgroupRoot: [", "F:2:1: not valid YAML"},
		{"maxPods: 3\nstaticPodPath: ''\nfailSwapOn: false\nnodeName: '-'", "F:4:11: nodeName"},
	}
	for _, row := range rows {
		r.write(t, row.text)
		r.asked()
		var got []string
		for _, p := range r.store.Manifests().Settings {
			got = append(got, strings.ReplaceAll(p.Error(), r.from.File, "F"))
		}
		if text := strings.Join(got, "|"); !strings.HasPrefix(text, row.want) {
			t.Errorf("shown\n%s\nwant\n%s", text, row.want)
		}
	}
	os.Remove(r.from.File)
	r.asked()
	if shown := r.store.Manifests().Settings; len(shown) != 1 || !strings.Contains(shown[0].Message, "no such file") {
		t.Errorf("without a file: %v", shown)
	}
	if n := strings.Count(r.log.String(), "level=ERROR"); n != len(rows)+1 || len(r.called) > 0 || r.live.Load().MaxPods != 9 {
		t.Errorf("%d errors, told %s, pods %d", n, r.called, r.live.Load().MaxPods)
	}
	r.write(t, "maxPods: 4\n")
	if r.asked(); r.live.Load().MaxPods != 4 || len(r.store.Manifests().Settings) > 0 {
		t.Errorf("a good one: %d, shown %v", r.live.Load().MaxPods, r.store.Manifests().Settings)
	}
}

// What others report of the manifests does not hide what is wrong with the settings.
func TestSettingsAreShownBesideTheManifests(t *testing.T) {
	r := newReloaded(t, "")
	r.store.SetSettings([]status.Problem{{Message: "bad"}})
	r.store.SetManifests(status.Manifests{Dir: "/m"})
	if m := r.store.Manifests(); m.Dir != "/m" || len(m.Settings) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestWithoutAFileThereIsNothingToRead(t *testing.T) {
	r := newReloaded(t, "")
	r.from.File, r.from.Read = "", func() (config.Config, []decode.Problem, error) { return config.Config{}, nil, errors.New("read") }
	r.asked()
	if !strings.Contains(r.log.String(), "no --config file to read again") || len(r.store.Manifests().Settings) > 0 {
		t.Errorf("log %s", r.log.String())
	}
}
