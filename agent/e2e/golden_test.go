//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/e2e/golden"
	"monopod/agent/e2e/rig"
)

const (
	goldenDir         = "../../testdata/golden"
	goldenAtOnce      = 16              // more would hold up each other's starts
	goldenSettle      = 8 * time.Second // when the recordings were taken
	goldenPatience    = 5 * time.Minute // how much longer than that a slow machine may need in all
	goldenLeast       = 99              // percent of the facts that must be as they should be
	recordedCPUs      = "0-1"           // all that the recorded machine had
	recordedTaskLimit = "3552"          // systemd's DefaultTasksMax there, a share of what its memory allows
	stopFacts         = "stop["         // begins the facts that are there when a pod goes
)

// TestGolden gives every manifest of the recordings to monopod on a real runtime
// and compares the calls, the cgroups and the status with those of a kubelet.
func TestGolden(t *testing.T) {
	r := open(t, newest())
	recording := goldenRecording(t, r)
	cases, err := golden.Read(goldenDir, recording)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT compared: there is no recording %s", recording)
	}
	check(t, err)
	if offersUsers(t, r) {
		t.Log("NOT compared: userns, as the recorded runtime offered no user namespaces and this one does")
		delete(cases, "userns")
	}
	withoutAbsentPages(t, cases)
	departures := goldenDepartures[place{r.Runtime.Version, recording}]
	if r.Runtime.UsesCrun() {
		departures += crunDepartures[recording]
	}
	meant, own := goldenMeant(t, departures)
	looking, _ := goldenMeant(t, departures) // counts apart
	got := newGoldenRun(t, r, looking).play(cases)
	var left []string
	if unified() {
		left = []string{stopFacts} // these recordings were taken without
	}
	var score golden.Score
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		score.Add(name, cases[name].Facts, golden.View(got[name]), left, meant)
	}
	for _, line := range meant.Used() {
		t.Log(line)
	}
	for _, line := range score.Waiting {
		t.Log("not yet: " + line)
	}
	for _, line := range score.Unknown {
		t.Error("UNKNOWN: " + line)
	}
	for _, line := range own.Unused() {
		t.Errorf("departures_test.go: %q stands for no difference", line)
	}
	t.Logf("%d cases: %s", len(cases), &score)
	if p := score.Percent(); p < goldenLeast {
		t.Errorf("%.2f %% of the facts are as they should be, want %d %%", p, goldenLeast)
	}
}

// withoutAbsentPages takes the limits of 1 GB pages from the recordings where the machine has none:
// the recorded one had some.
func withoutAbsentPages(t *testing.T, cases map[string]golden.Case) {
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-1048576kB"); err == nil {
		return
	}
	t.Log("NOT compared: limits of 1 GB pages, as the recorded machine had such pages and this one has none")
	for _, c := range cases {
		maps.DeleteFunc(c.Facts, func(key string, _ any) bool { return strings.Contains(key, "hugepage_limits[1GB]") })
	}
}

// goldenMeant returns how pods shall differ from the recordings, and which of that is this runtime's own:
// departures, in the words of differences.md.
func goldenMeant(t *testing.T, departures string) (all, own golden.Meant) {
	t.Helper()
	all, err := golden.ReadMeant(filepath.Join(goldenDir, "differences.md"))
	check(t, err)
	own, err = golden.ParseMeant("departures_test.go", departures)
	check(t, err)
	return append(all, own...), own
}

// goldenRecording is the name of the recording from a machine like this one.
func goldenRecording(t *testing.T, r *rig.Rig) string {
	t.Helper()
	if !unified() {
		return "cgroup1-cgroupfs"
	}
	c, err := r.CRI.Runtime.RuntimeConfig(t.Context(), &rt.RuntimeConfigRequest{})
	check(t, err)
	if c.GetLinux().GetCgroupDriver() == rt.CgroupDriver_SYSTEMD {
		return "cgroup2-systemd"
	}
	return "cgroup2-cgroupfs"
}

// goldenRun is an agent whose calls are recorded.
type goldenRun struct {
	*world
	recorder *recorder
	meant    golden.Meant
	image    string        // the runtime's id of the image that all run
	patience time.Duration // what is left of goldenPatience, or enough for another look
}

func newGoldenRun(t *testing.T, r *rig.Rig, meant golden.Meant) *goldenRun {
	t.Helper()
	const image = "localhost/busybox:1" // of the recordings
	check(t, r.Registry.Copy(rig.Busybox, image))
	check(t, r.CRI.Pull(t.Context(), image))
	id, err := r.CRI.ImageID(t.Context(), image)
	check(t, err)
	g := &goldenRun{newWorld(t, r, monopod(t), v1.NamespaceDefault), newRecorder(t, r.Runtime.Endpoint), meant, id, goldenPatience}
	resolv := filepath.Join(g.agent.Dir, "resolv.conf")
	check(t, os.WriteFile(resolv, []byte("nameserver 10.0.0.10\nsearch corp.example\noptions ndots:1\n"), 0o644))
	g.agent.Endpoint, g.agent.Flags = g.recorder.endpoint, []string{"--resolv-conf", resolv}
	g.start()
	return g
}

// play runs all cases, so many at once, and returns what the agent did.
func (g *goldenRun) play(cases map[string]golden.Case) map[string]golden.Recorded {
	got := map[string]golden.Recorded{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(cases)), goldenAtOnce) {
		g.batch(cases, some, got)
	}
	calls := g.recorder.of(g.T)
	for c, r := range got {
		r.Calls = calls[g.podName(cases[c])]
		got[c] = r
	}
	return got
}

// batch puts manifests in place, looks at their pods after the settling time or,
// on a machine that is slower than the recorded one, when they have come as far,
// and removes them again.
func (g *goldenRun) batch(cases map[string]golden.Case, some []string, got map[string]golden.Recorded) {
	g.Helper()
	here := filepath.Join(g.agent.Dir, "hp")
	for _, c := range some {
		g.writeFile(c+".yaml", strings.ReplaceAll(string(cases[c].Manifest), "/tmp/golden-hp", here))
	}
	settle(g.Context(), goldenSettle)
	behind, since := slices.Clone(some), time.Now()
	_ = rig.Until(g.Context(), min(limit, g.patience), func() error { // what never comes as far is found by the score
		for c, r := range g.look(cases, behind, here) {
			got[c] = r
		}
		behind = slices.DeleteFunc(behind, func(c string) bool { return g.asFar(c, cases[c], got[c]) })
		if len(behind) > 0 {
			return fmt.Errorf("%v differ", behind)
		}
		return nil
	})
	g.patience = max(g.patience-time.Since(since), goldenSettle)
	check(g.T, g.agent.Clear())
	g.until("the pods are gone", func() error { return g.empty(g.Context()) })
}

// look returns what there is to be seen of some cases now, and what the agent did.
func (g *goldenRun) look(cases map[string]golden.Case, some []string, here string) map[string]golden.Recorded {
	g.Helper()
	list, err := g.agent.Pods(g.Context())
	check(g.T, err)
	pods := map[string]v1.Pod{}
	for _, p := range list {
		pods[p.Name] = p
	}
	calls := g.recorder.of(g.T)
	out := map[string]golden.Recorded{}
	for _, c := range some {
		r := golden.Recorded{Calls: calls[g.podName(cases[c])], Elsewhere: map[string]string{
			here: "/tmp/golden-hp", g.agent.Cgroups + "/kubepods": "/kubepods",
			"localhost/busybox@": "",          // theirs was not pulled
			g.image:              "sha256:ID", // CRI-O leaves the algorithm away
		}}
		if p, ok := pods[g.podName(cases[c])]; ok {
			r.Pod, err = golden.Values(p)
			check(g.T, err)
			r.Cgroups = g.cgroupFiles(string(p.UID))
		}
		out[c] = r
	}
	return out
}

// asFar reports whether nothing differs that should not, but for what is seen
// when the pod goes.
func (g *goldenRun) asFar(name string, c golden.Case, r golden.Recorded) bool {
	var score golden.Score
	score.Add(name, c.Facts, golden.View(r), []string{stopFacts}, g.meant)
	return len(score.Unknown)+score.NotYet == 0
}

// settle waits, because the recordings were taken after so long.
func settle(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// podName is what a case's pod is called towards the runtime.
func (g *goldenRun) podName(c golden.Case) string {
	g.Helper()
	v, err := golden.Values(c.Manifest)
	check(g.T, err)
	metadata, _ := v["metadata"].(map[string]any)
	return name(word(metadata, "name"))
}

// goldenFiles are the files of cgroups that were recorded, by v1 controller; ""
// is v2.
func goldenFiles() map[string][]string {
	if unified() {
		return map[string][]string{"": {"cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.high", "pids.max", "cgroup.controllers"}}
	}
	return map[string][]string{"cpu": {"cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"},
		"memory": {"memory.limit_in_bytes"}, "pids": {"pids.max"}, "cpuset": {"cpuset.cpus"}}
}

// taskLimit is how many tasks systemd allows each unit of this machine, "" without systemd.
func taskLimit() string {
	out, _ := exec.Command("systemctl", "show", "--property=DefaultTasksMax", "--value").Output()
	return strings.TrimSpace(string(out))
}

// cgroupFiles reads the files of a pod's cgroups and its containers'.
func (g *goldenRun) cgroupFiles(uid string) map[string]map[string]string {
	out := map[string]map[string]string{}
	b, _ := os.ReadFile(filepath.Join(cgroupMount, "cpuset", "cpuset.cpus"))
	recorded := map[string]string{"cpuset.cpus " + strings.TrimSpace(string(b)): recordedCPUs, "pids.max " + taskLimit(): recordedTaskLimit}
	for controller, files := range goldenFiles() {
		base := filepath.Join(cgroupMount, controller)
		_ = filepath.WalkDir(base+g.agent.Cgroups, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || !strings.Contains(path, uid) && !strings.Contains(path, strings.ReplaceAll(uid, "-", "_")) {
				return nil // what goes meanwhile is of no interest
			}
			dir := strings.TrimPrefix(path, base)
			for _, file := range files {
				b, err := os.ReadFile(filepath.Join(path, file))
				if err != nil {
					continue
				}
				if out[dir] == nil {
					out[dir] = map[string]string{}
				}
				text := strings.TrimSpace(string(b))
				out[dir][file] = cmp.Or(recorded[file+" "+text], text)
			}
			return nil
		})
	}
	return out
}
