package agent

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/config"
	"monopod/agent/e2e/golden"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cri/critest"
	"monopod/manifests"
)

// goldenSettings are the recordings and the machines they were made on.
var goldenSettings = []struct {
	file  string
	node  func(*podspec.Host)
	left  string  // beginnings of facts that are left out
	least float64 // percent of the facts that must be equal, or differ as they are meant to
}{
	{"cgroup1-cgroupfs", func(n *podspec.Host) { n.CgroupV2, n.Memory, n.Cgroups.Driver = false, 30e9, cgroups.Cgroupfs }, "cgroup[", 100},
	{"cgroup2-cgroupfs", func(n *podspec.Host) { n.CgroupV2, n.Memory, n.Cgroups.Driver = true, 3.1e9, cgroups.Cgroupfs }, "cgroup[ stop[", 100},
	{"cgroup2-systemd", func(n *podspec.Host) { n.CgroupV2, n.Memory, n.Cgroups.Driver = true, 3.1e9, cgroups.Systemd }, "cgroup[ stop[", 100},
}

// takeRoot are cases that only root can set up: they change owners and mount.
var takeRoot = []string{"fsgroup-emptydir", "subpath", "subpath-expr"}

func TestPodsAreMadeAsTheKubeletMadeThem(t *testing.T) {
	meant, err := golden.ReadMeant("../testdata/golden/differences.md")
	noErr(t, err)
	for _, s := range goldenSettings {
		t.Run(s.file, func(t *testing.T) {
			cases, err := golden.Read("../testdata/golden", s.file)
			noErr(t, err)
			if os.Geteuid() != 0 {
				t.Logf("NOT compared, because this is not root: %v", takeRoot)
				maps.DeleteFunc(cases, func(name string, _ golden.Case) bool { return slices.Contains(takeRoot, name) })
			}
			var score golden.Score
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				t.Run(name, func(t *testing.T) {
					score.Add(name, cases[name].Facts, replay(t, cases[name], s.node), strings.Fields(s.left), meant)
				})
			}
			for _, d := range score.Unknown {
				t.Error(d)
			}
			t.Logf("%d cases: %s", len(cases), &score)
			if p := score.Percent(); p < s.least && os.Geteuid() == 0 {
				t.Errorf("%.2f %% of the facts are as they should be, it was %.2f %%", p, s.least)
			}
		})
	}
	for _, line := range meant.Unused() {
		t.Errorf("differences.md: %q stands for no difference", line)
	}
}

// replay gives the manifest to an agent on a runtime that answers as the
// recorded one did, and returns the facts.
func replay(t *testing.T, c golden.Case, set func(*podspec.Host)) golden.Facts {
	dir := t.TempDir()
	text := strings.ReplaceAll(string(c.Manifest), "/tmp/golden-hp", filepath.Join(dir, "golden-hp"))
	resolv := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver 10.0.0.10\nsearch corp.example\noptions ndots:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := golden.Recorded{Elsewhere: map[string]string{filepath.Join(dir, "golden-hp"): "/tmp/golden-hp"}}
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}
		r.configure = func(c *config.Config) { c.NodeName, c.ResolvConf = "node1", resolv }
		r.machine = func(n *podspec.Host) {
			set(n)
			n.HostIPs, n.HugePageSizes, n.SwapController = []string{"192.0.2.2"}, []string{"2MB", "1GB"}, true
		}
		r.Lacks(critest.UserNamespaces) // with runc 1.1, as it was recorded
		r.AddImage("localhost/busybox:1")
		r.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return goldenDial(text, network, address)
		}
		r.OnExec(goldenExec)
		r.start()
		defer func() { r.stop() }()
		pods, problems := manifests.Decode("/m/x.yaml", []byte(text), r.options)
		for _, p := range problems {
			t.Log(p)
		}
		goldenWorld(c, r, pods)
		r.offers <- manifests.Snapshot{Complete: true, Pods: pods}
		r.after(8 * time.Second)
		if len(pods) > 0 {
			if p, ok := r.store.Pod(pods[0].Key().String()); ok {
				v, err := golden.Values(p)
				noErr(t, err)
				got.Pod = v
			}
		}
		r.offers <- manifests.Snapshot{Complete: true}
		r.after(45 * time.Second)
		for _, c := range r.Calls() {
			if c.Request != nil {
				call, err := golden.NewCall(c.Method, c.Request, c.Response)
				noErr(t, err)
				got.Calls = append(got.Calls, call)
			}
		}
	})
	return golden.View(got)
}

// goldenWorld makes the runtime answer, and the containers' programs do, what they
// did when it was recorded.
func goldenWorld(c golden.Case, r *rig, pods []*manifests.Pod) {
	for _, p := range pods {
		for _, k := range podspec.AllContainers(p.Pod) {
			r.Program(k.Name, program(slices.Concat(k.Command, k.Args)))
			if text, ok := c.Errors["StartContainer"]; ok {
				r.Program(k.Name, critest.FailsToStart(errors.New(text)))
			}
		}
	}
	for _, method := range []string{"CreateContainer", "PullImage"} {
		if text, ok := c.Errors[method]; ok {
			r.Fault(critest.On(method).Fail(codes.Unknown, text))
		}
	}
}

var (
	exitIn  = regexp.MustCompile(`exit (\d+)$`)
	writeTo = regexp.MustCompile(`^echo (.*) >(/\S+)$`)
)

// program is what the few commands of the corpus do.
func program(command []string) critest.Program {
	script := command[len(command)-1]
	if len(command) == 1 || strings.HasPrefix(script, "trap ") || strings.Contains(script, "httpd") || strings.HasSuffix(script, "3600") {
		return critest.Runs()
	}
	var after time.Duration
	var code int
	var path, text string
	for part := range strings.SplitSeq(script, "; ") {
		if m := writeTo.FindStringSubmatch(part); m != nil {
			path, text = m[2], m[1]+"\n"
		}
		if m := exitIn.FindStringSubmatch(part); m != nil {
			code, _ = strconv.Atoi(m[1])
		}
		if s, ok := strings.CutPrefix(part, "sleep "); ok {
			after, _ = time.ParseDuration(s + "s")
		}
	}
	return critest.ExitsAfter(after, int32(code)).Writes(path, text)
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
