package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/config"
	"monopod/agent/image"
	"monopod/agent/logrotate"
	"monopod/agent/settings"
	"monopod/agent/status"
	"monopod/manifests/decode"
)

// reloaded is a reloader on a file, and what came of reading it.
type reloaded struct {
	*Reloader
	text   bytes.Buffer
	called []string // who was told

	reloads int // that the service manager was told of, and 100 for each end
}

func newReloaded(t *testing.T, text string) *reloaded {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	r := &reloaded{}
	log := slog.New(slog.NewTextHandler(&r.text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(context.Background()) })
	base := config.Default()
	base.Manifests, base.NodeName, base.Root = []string{"/m"}, "n", filepath.Join(t.TempDir(), "root")
	told := func(who string, what ...any) {
		r.called = append(r.called, strings.TrimSpace(fmt.Sprintln(append([]any{who}, what...)...)))
	}
	r.Reloader = &Reloader{
		From: Reread{File: path, Read: func() (config.Config, []decode.Problem, error) { return config.ReadFile(path, base) }},
		Live: &atomic.Pointer[config.Config]{}, Store: store, Log: log, Level: &slog.LevelVar{},
		Logs:   func(c logrotate.Config) { told("logs", c.MaxSize, c.MaxFiles) },
		Images: func(l image.Limits) { told("images", l.High, l.Low) },
		Rate:   func(qps, burst int) { told("rate", qps, burst) },
		Pods:   func() { told("pods") },
		Node:   func() { told("node") },
		Hosts:  func() { told("hosts") },
		Resolv: func() { told("resolv") },
		Telling: func() func() {
			r.reloads++
			return func() { r.reloads += 100 }
		},
	}
	r.write(t, text)
	c, _, err := config.ReadFile(path, base)
	if err == nil {
		c, err = settings.Complete(c, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Live.Store(&c)
	return r
}

func (r *reloaded) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.From.File, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// said returns the settings that a line of the log names.
func (r *reloaded) said(words string) string {
	for line := range strings.Lines(r.text.String()) {
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
		{"what changed pods keep", "", "updatePolicy: Replace", "pods", "updatePolicy", "", func(c config.Config) bool { return c.UpdatePolicy == "Replace" }},
		{"updates", "", "updateStrategy: StopFirst", "pods", "updateStrategy", "", func(c config.Config) bool { return c.UpdateStrategy == "StopFirst" }},
		{"what else there is of updates", "", "updateHealth: 30s\nupdateStable: 20s\nupdateWindow: Sun 02:00-04:00\nupdateLockMax: 30m", "pods",
			"updateHealth, updateStable, updateWindow, updateLockMax", "", func(c config.Config) bool {
				return c.UpdateHealth == 30*time.Second && c.UpdateStable == 20*time.Second
			}},
		{"pods of a core", "", "podsPerCore: 4", "pods|node", "podsPerCore", "", func(c config.Config) bool { return c.PodsPerCore == 4 }},
		{"name servers", "", "followResolvConf: true", "resolv", "followResolvConf", "", func(c config.Config) bool { return c.FollowResolvConf }},
		{"hosts", "", "podHosts: true", "hosts", "podHosts", "", func(c config.Config) bool { return c.PodHosts }},
		{"labels and room", "", "nodeLabels: {disk: ssd}\nmaxPods: 7", "pods|node|pods|node", "nodeLabels, maxPods", "",
			func(c config.Config) bool { return c.NodeLabels["disk"] == "ssd" && c.MaxPods == 7 }},
		{"places", "root: /a", "root: /b\nstaticPodPath: /n", "", "", "staticPodPath, root", func(c config.Config) bool { return c.Root == "/a" && slices.Equal(c.Manifests, []string{"/m"}) }},
		{"both", "", "clusterDomain: c\nregistryBurst: 2", "rate 0 2", "registryBurst", "clusterDomain",
			func(c config.Config) bool { return c.ClusterDomain == "" && c.PullBurst == 2 }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newReloaded(t, row.before)
			r.write(t, row.after)
			r.onRequest(nil)
			if r.reloads != 101 {
				t.Errorf("the service manager was told %d", r.reloads)
			}
			if got := strings.Join(r.called, "|"); got != row.called {
				t.Errorf("told %q, want %q", got, row.called)
			}
			if got := r.said("settings applied"); got != row.counts {
				t.Errorf("%q applied, want %q", got, row.counts)
			}
			if got := r.said("after a restart"); got != row.later {
				t.Errorf("%q need a restart, want %q", got, row.later)
			}
			if c := *r.Live.Load(); !row.want(c) {
				t.Errorf("what counts now: %+v", c)
			}
			shown := r.Store.Manifests().Settings
			if later := row.later != ""; later != (len(shown) == 1) || later && (!shown[0].Warning || !strings.HasSuffix(shown[0].Message, ": "+row.later)) {
				t.Errorf("shown: %v", shown)
			}
			r.called = nil
			r.write(t, row.before) // what waited for a restart does not any more
			r.onRequest(nil)
			if shown := r.Store.Manifests().Settings; len(shown) > 0 {
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
		r.onRequest(nil)
		if r.Level.Level() != want {
			t.Errorf("%s: %s", text, r.Level.Level())
		}
	}
}

// A file that makes no sense changes nothing and is shown until it does.
func TestABadFileKeepsTheSettings(t *testing.T) {
	r := newReloaded(t, "maxPods: 9\n")
	rows := []struct{ text, want string }{
		{"maxPods: 3\nregistryPullQPS: -1\nroot: 7\n", "F:2:18: registryPullQPS: must not be negative|F:3:7: root: expected a string, got a number: put it in quotes"},
		{"maxPods: 3\ncgroupRoot: [", "F:2:1: not valid YAML"},
		{"maxPods: 3\nlisten: 0.0.0.0:10255\n", "F: listen on 0.0.0.0:10255: others can reach this address: it needs tlsCertFile"},
		{"maxPods: 3\nstaticPodPath: ''\nfailSwapOn: false\nnodeName: '-'", "F:4:11: nodeName"},
	}
	for _, row := range rows {
		r.write(t, row.text)
		r.onRequest(nil)
		var got []string
		for _, p := range r.Store.Manifests().Settings {
			got = append(got, strings.ReplaceAll(p.Error(), r.From.File, "F"))
		}
		if text := strings.Join(got, "|"); !strings.HasPrefix(text, row.want) {
			t.Errorf("shown\n%s\nwant\n%s", text, row.want)
		}
	}
	os.Remove(r.From.File)
	r.onRequest(nil)
	if shown := r.Store.Manifests().Settings; len(shown) != 1 || !strings.Contains(shown[0].Message, "no such file") {
		t.Errorf("without a file: %v", shown)
	}
	if n := strings.Count(r.text.String(), "level=ERROR"); n != len(rows)+1 || len(r.called) > 0 || r.Live.Load().MaxPods != 9 {
		t.Errorf("%d errors, told %s, pods %d", n, r.called, r.Live.Load().MaxPods)
	}
	r.write(t, "maxPods: 4\n")
	r.onRequest(nil)
	if r.Live.Load().MaxPods != 4 || len(r.Store.Manifests().Settings) > 0 {
		t.Errorf("a good one: %d, shown %v", r.Live.Load().MaxPods, r.Store.Manifests().Settings)
	}
}

// What is not written yet has not gone back to its default. Where each file seems to have a writer,
// one that stays as it is counts.
func TestAFileIsReadOnceItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReloaded(t, "maxPods: 9\nupdateLockMax: 30m\n")
		r.again = time.NewTimer(time.Hour)
		lock := func() time.Duration { return r.Live.Load().UpdateLockMax }
		f, err := os.OpenFile(r.From.File, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func(text string) {
			t.Helper()
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			r.written = time.Now()
		}
		look := func(pods int64, lockMax time.Duration) {
			t.Helper()
			r.onChange(nil)
			if c := r.Live.Load(); c.MaxPods != pods || lock() != lockMax {
				t.Errorf("%d pods, locks for %s, want %d and %s", c.MaxPods, lock(), pods, lockMax)
			}
		}
		write("maxPods: 3\n")
		look(9, 30*time.Minute)
		<-r.again.C
		look(9, 30*time.Minute)
		time.Sleep(noWriter)
		look(3, time.Hour)
		write("updateLockMax: 20m\n")
		look(3, time.Hour)
		f.Close()
		<-r.again.C
		look(3, 20*time.Minute)
	})
}

// A file that tells a secret to others is a bad file.
func TestAFileThatOthersCanOpenKeepsTheSettings(t *testing.T) {
	r := newReloaded(t, "maxPods: 9\n")
	r.write(t, "maxPods: 3\nstaticPodURLHeader: {A: [hunter2]}\n")
	if err := os.Chmod(r.From.File, 0o640); err != nil {
		t.Fatal(err)
	}
	r.onRequest(nil)
	shown := r.Store.Manifests().Settings
	if len(shown) != 1 || !strings.HasSuffix(shown[0].Message, "(mode 0640): chmod 600 "+r.From.File) || len(r.called) > 0 || r.Live.Load().MaxPods != 9 {
		t.Errorf("shown %v, told %s, pods %d", shown, r.called, r.Live.Load().MaxPods)
	}
}

// What a file asks for that does not exist here is shown as long as it does, and the rest counts.
func TestWhatDoesNotExistIsShown(t *testing.T) {
	r := newReloaded(t, "")
	if err := errors.Join(os.MkdirAll(r.Live.Load().Root, 0o750), os.WriteFile(filepath.Join(r.Live.Load().Root, "instance"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r.write(t, "maxPods: 3\nmemoryManagerPolicy: Static\n")
	for range 2 {
		r.onRequest(nil)
		shown := r.Store.Manifests().Settings
		if len(shown) != 1 || shown[0].Warning || shown[0].Field != "memoryManagerPolicy" || shown[0].Line != 2 || r.Live.Load().MaxPods != 3 {
			t.Errorf("shown %v, pods %d", shown, r.Live.Load().MaxPods)
		}
	}
	r.write(t, "maxPods: 3\n")
	r.onRequest(nil)
	if len(r.Store.Manifests().Settings) > 0 {
		t.Errorf("still shown: %v", r.Store.Manifests().Settings)
	}
}

// What others report of the manifests does not hide what is wrong with the settings.
func TestSettingsAreShownBesideTheManifests(t *testing.T) {
	r := newReloaded(t, "")
	r.Store.SetSettings([]status.Problem{{Message: "bad"}})
	r.Store.SetManifests(status.Manifests{Dir: "/m"})
	if m := r.Store.Manifests(); m.Dir != "/m" || len(m.Settings) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestWithoutAFileThereIsNothingToRead(t *testing.T) {
	r := newReloaded(t, "")
	r.From.File, r.From.Read = "", func() (config.Config, []decode.Problem, error) { return config.Config{}, nil, errors.New("read") }
	r.onRequest(nil)
	if !strings.Contains(r.text.String(), "no --config file to read again") || len(r.Store.Manifests().Settings) > 0 {
		t.Errorf("log %s", r.text.String())
	}
}

// Settings on a file system that gives no answer are a problem, and end neither the reloads
// nor the agent.
func TestSettingsThatHangAreReadOnceTheyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReloaded(t, "maxPods: 3\n")
		read, hung := r.From.Read, make(chan struct{})
		r.From.Read = func() (config.Config, []decode.Problem, error) {
			<-hung
			return read()
		}
		r.onRequest(nil)
		want := "read settings " + r.From.File + ": its file system gives no answer; it is read as soon as there is one"
		if all := r.Store.Manifests().Settings; len(all) != 1 || all[0].Message != want || r.Live.Load().MaxPods != 3 || r.reloads != 101 {
			t.Errorf("%+v, %d pods, told %d", all, r.Live.Load().MaxPods, r.reloads)
		}
		r.write(t, "maxPods: 4\n")
		close(hung)
		synctest.Wait()
		r.onRequest(nil)
		if all := r.Store.Manifests().Settings; len(all) != 0 || r.Live.Load().MaxPods != 4 {
			t.Errorf("%+v, %d pods", all, r.Live.Load().MaxPods)
		}
	})
}
