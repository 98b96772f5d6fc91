package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
	"monopod/cri/critest"
	"monopod/manifests"
)

// pair is a manifest of two containers, a and b, with changes: each is the old text and
// the new one.
func pair(changes ...string) string {
	doc := `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {v: one}}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - {name: a, image: "img:1", command: ["a1"], resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}}
  - {name: b, image: "img:1", command: ["b1"], resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}}
`
	for k := 0; k < len(changes); k += 2 {
		if !strings.Contains(doc, changes[k]) {
			panic(changes[k])
		}
		doc = strings.Replace(doc, changes[k], changes[k+1], 1)
	}
	return doc
}

// ran is what a pod had at one moment.
type ran struct {
	uid, sandbox string
	ids          map[string]string // of the running containers, by name
}

func (r *rig) ran() ran {
	r.Helper()
	out := ran{ids: map[string]string{}}
	if p, ok := r.store.Pod("default/web-n"); ok {
		out.uid = string(p.UID)
	}
	for _, b := range r.Sandboxes() {
		if b.Ready {
			out.sandbox = b.ID
		}
	}
	running := r.Running()
	for _, c := range r.Containers() {
		if slices.Contains(running, c.Namespace+"/"+c.Pod+"/"+c.Name) && c.State == 1 {
			out.ids[c.Name] = c.ID
		}
	}
	return out
}

// changed are the names of what is another.
func (was ran) changed(is ran) (out []string) {
	if was.uid != is.uid {
		out = append(out, "uid")
	}
	if was.sandbox != is.sandbox {
		out = append(out, "sandbox")
	}
	for _, name := range []string{"a", "b"} {
		if was.ids[name] != is.ids[name] {
			out = append(out, name)
		}
	}
	return out
}

var changing = []string{"RunPodSandbox", "StopPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "UpdateContainerResources"}

// callsMade are the changing calls since ForgetCalls, each with its number.
func (r *rig) callsMade() string {
	var out []string
	for _, method := range changing {
		if n := r.Count(method); n > 0 {
			out = append(out, fmt.Sprintf("%s %d", method, n))
		}
	}
	return strings.Join(out, ", ")
}

func TestAChangeCostsWhatItsVerdictSays(t *testing.T) {
	rows := []struct{ name, next, changed, calls string }{
		{"nothing", pair("terminationGracePeriodSeconds: 5", "terminationGracePeriodSeconds: 5\n  hostUsers: true"), "", ""},
		{"a label", pair("v: one", "v: two"), "", ""},
		{"the grace period", pair("Seconds: 5", "Seconds: 7"), "", ""},
		{"a probe", pair(`command: ["a1"]`, `command: ["a1"], livenessProbe: {exec: {command: [live]}}`), "", ""},
		{"a command", pair("b1", "b2"), "b", "CreateContainer 1, StartContainer 1, StopContainer 1"},
		{"an image", pair(`a, image: "img:1"`, `a, image: "img:2"`), "a", "CreateContainer 1, StartContainer 1, StopContainer 1"},
		{"a host name", pair("containers:", "hostname: other\n  containers:"), "uid sandbox a b",
			"RunPodSandbox 1, StopPodSandbox 1, CreateContainer 2, StartContainer 2, StopContainer 2"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(pair())
				r.after(time.Minute)
				was := r.ran()
				r.ForgetCalls()
				r.want(row.next)
				r.after(time.Minute)
				if got := strings.Join(was.changed(r.ran()), " "); got != row.changed {
					r.Errorf("changed: %q, want %q", got, row.changed)
				}
				if got := r.callsMade(); got != row.calls {
					r.Errorf("calls: %s, want %s", got, row.calls)
				}
				r.accepted(row.next)
				is := r.ran()
				r.kill()
				r.ForgetCalls()
				r.start()
				r.want(row.next)
				r.after(time.Minute)
				if got := is.changed(r.ran()); len(got) > 0 || r.callsMade() != "" {
					r.Errorf("the next agent changes %v: %s", got, r.callsMade())
				}
				r.want()
				r.after(time.Minute)
				r.leavesNothing()
			})
		})
	}
}

// accepted checks that status and checkpoint have the content of a manifest.
func (r *rig) accepted(doc string) {
	r.Helper()
	p, _ := r.store.Pod("default/web-n")
	c := r.checkpoint("web-n")
	want := r.decode(doc)
	if c == nil || c.Digest != want.Digest || p.UID != c.Pod.UID {
		r.Errorf("the checkpoint has another version: %+v", c)
	}
	if p.Labels["v"] != want.Labels["v"] || *p.Spec.TerminationGracePeriodSeconds != *want.Spec.TerminationGracePeriodSeconds ||
		p.Spec.Containers[1].Command[0] != want.Spec.Containers[1].Command[0] {
		r.Errorf("reported: %+v", p)
	}
}

func TestARestartInPlaceIsCountedAndNotDelayed(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		r.want(pair("b1", "b2"))
		r.after(time.Second)
		st := r.status("default/web-n")
		if n := st.ContainerStatuses[1].RestartCount; n != 1 || st.ContainerStatuses[0].RestartCount != 0 || st.Phase != v1.PodRunning {
			r.Errorf("status %+v", st)
		}
		for _, c := range r.Containers() {
			if c.State == 1 && c.Name == "b" && c.Config.Command[0] != "b2" {
				r.Errorf("b runs %v", c.Config.Command)
			}
		}
		if text := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(text, "Container b definition changed, will be restarted") {
			r.Errorf("events:\n%s", text)
		}
	})
}

func TestACrashingContainerStartsAtOnceInANewVersion(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("b", critest.Exits(1))
		r.want(pair())
		r.after(6 * time.Minute)
		was := r.ran()
		r.Program("b", critest.Runs())
		r.want(pair("b1", "b2"))
		r.after(time.Second)
		if got := strings.Join(was.changed(r.ran()), " "); got != "b" {
			r.Errorf("changed: %s", got)
		}
	})
}

func TestARestartInPlaceWaitsForItsImage(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		next := pair(`b, image: "img:1"`, `b, image: "img:9"`)
		r.stopsNothing(func() {
			r.want(next)
			r.after(time.Hour)
		})
		if got := was.changed(r.ran()); len(got) > 0 {
			r.Errorf("changed: %v", got)
		}
		r.online("img:9")
		r.after(10 * time.Minute)
		if got := strings.Join(was.changed(r.ran()), " "); got != "b" {
			r.Errorf("changed: %s", got)
		}
		r.accepted(next)
	})
}

// A container runs until the one that takes its place can start: volumes are set up for all
// containers of the pod.
func TestARestartInPlaceWaitsForThePathsOfTheMachine(t *testing.T) {
	for name, restarts := range map[string]string{"of the container that mounts one": "a", "of another container": "b"} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				dir := filepath.Join(r.dir, "there")
				noErr(t, os.MkdirAll(dir, 0o755))
				web := func(changes ...string) string {
					return pair(append(changes, "containers:", "volumes: [{name: v, hostPath: {path: "+dir+", type: Directory}}]\n  containers:",
						`["a1"],`, `["a1"], volumeMounts: [{name: v, mountPath: /v}],`)...)
				}
				r.want(web())
				r.after(time.Minute)
				was, next := r.ran(), web(restarts+`, image: "img:1"`, restarts+`, image: "img:2"`)
				noErr(t, os.Remove(dir))
				r.stopsNothing(func() {
					r.want(next)
					r.after(time.Minute)
				})
				if got, words := was.changed(r.ran()), r.words("default/web-n"); len(got) > 0 || !strings.Contains(words, "update waits: ") || !strings.Contains(words, dir+" is not a directory") {
					t.Errorf("changed: %v; it says %q", got, words)
				}
				noErr(t, os.MkdirAll(dir, 0o755))
				r.after(5 * time.Minute)
				if got := strings.Join(was.changed(r.ran()), " "); got != restarts {
					t.Errorf("changed: %s", got)
				}
				r.accepted(next)
			})
		})
	}
}

// The grace period and the preStop hook of a running container are those of the version
// that is accepted.
func TestAStopGoesByTheAcceptedVersion(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("b", critest.Runs().OnTerm(time.Hour, 0))
		r.want(pair())
		r.want(pair("Seconds: 5", "Seconds: 50"))
		r.ForgetCalls()
		r.want()
		r.after(30 * time.Second)
		if len(r.Running()) != 1 {
			r.Errorf("after 30 s there run %v", r.Running())
		}
		r.after(30 * time.Second)
		r.leavesNothing()
	})
}

func TestAProbeFollowsItsManifest(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		r.want(pair(`command: ["a1"]`, `command: ["a1"], readinessProbe: {exec: {command: [fails]}, periodSeconds: 1}`))
		r.after(time.Minute)
		if st := r.status("default/web-n"); !st.ContainerStatuses[0].Ready && r.Count("ExecSync") == 0 {
			r.Errorf("no probe was made: %+v", st)
		}
		if r.Count("ExecSync") == 0 {
			r.Error("no probe was made")
		}
		n := r.Count("ExecSync")
		r.want(pair())
		r.after(time.Minute)
		if more := r.Count("ExecSync") - n; more > 1 {
			r.Errorf("%d probes of the version before", more)
		}
		if st := r.status("default/web-n"); !st.ContainerStatuses[0].Ready || len(was.changed(r.ran())) > 0 {
			r.Errorf("status %+v", st)
		}
	})
}

// A hook that comes with a version was not there when the container started.
func TestAPostStartHookIsOfTheNextStart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		r.ForgetCalls()
		r.want(pair(`command: ["a1"]`, `command: ["a1"], lifecycle: {postStart: {exec: {command: [post]}}}`))
		r.after(time.Minute)
		if n := r.Count("ExecSync"); n > 0 || !r.status("default/web-n").ContainerStatuses[0].Ready {
			r.Errorf("%d hooks ran", n)
		}
	})
}

// A pod that has ended runs again when its manifest changes, unless it means the same.
func TestAnEndedPodRunsAgainForAnyChange(t *testing.T) {
	rows := []struct {
		name, extra string
		starts      int
	}{
		{"a label", "labels: {v: two}", 1},
		{"the same", "hostUsers", 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("c", critest.ExitsAfter(time.Second, 0))
				doc := manifest("web", "img:1", "restartPolicy: Never")
				r.want(doc)
				r.after(time.Minute)
				r.ForgetCalls()
				if row.extra == "hostUsers" {
					doc = manifest("web", "img:1", "restartPolicy: Never", "hostUsers: true")
				} else {
					doc = strings.Replace(doc, "{name: web}", "{name: web, "+row.extra+"}", 1)
				}
				r.want(doc)
				r.after(time.Minute)
				if n := r.Count("StartContainer"); n != row.starts {
					r.Errorf("%d starts", n)
				}
				if st := r.status("default/web-n"); st.Phase != v1.PodSucceeded {
					r.Errorf("phase %s", st.Phase)
				}
			})
		})
	}
}

func TestThePolicyMayReplaceForAnyChange(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.UpdatePolicy = "Replace" } }, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		r.want(pair("v: one", "v: two"))
		r.after(time.Minute)
		if got := strings.Join(was.changed(r.ran()), " "); got != "uid sandbox a b" {
			r.Errorf("changed: %s", got)
		}
	})
}

// The annotation of the new version counts, for the loop and the worker alike.
func TestAnAnnotationSaysWhetherAPodIsReplaced(t *testing.T) {
	for _, row := range []struct{ setting, word, changed string }{
		{"InPlace", "replace", "uid sandbox a b"},
		{"InPlace", "Replace", "uid sandbox a b"},
		{"Replace", "in-place", ""},
		{"Replace", "stop-first", "uid sandbox a b"},
	} {
		t.Run(row.setting+" and "+row.word, func(t *testing.T) {
			liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.UpdatePolicy = row.setting } }, func(r *rig) {
				doc := strings.Replace(pair(), "metadata: {", "metadata: {annotations: {monopod.update: "+row.word+"}, ", 1)
				r.want(doc)
				r.after(time.Minute)
				was := r.ran()
				next := strings.Replace(doc, "v: one", "v: two", 1)
				if next == doc {
					t.Fatal("nothing changes")
				}
				r.want(next)
				r.after(time.Minute)
				if got := strings.Join(was.changed(r.ran()), " "); got != row.changed {
					r.Errorf("changed: %q, want %q", got, row.changed)
				}
			})
		})
	}
}

// checkpoint returns the record of a pod as it is on disk; nil: there is none.
func (r *rig) checkpoint(name string) *checkpoint.Checkpoint {
	r.Helper()
	files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		c := &checkpoint.Checkpoint{}
		if err == nil && json.Unmarshal(b, c) == nil && c.Pod.Name == name {
			return c
		}
	}
	return nil
}

func (r *rig) decode(doc string) *manifests.Pod {
	r.Helper()
	pods, problems := manifests.Decode("/m/0.yaml", []byte(doc), r.options)
	if len(pods) != 1 {
		r.Fatal(problems)
	}
	return pods[0]
}

// resources are what the runtime gives a container: cpu shares, cpu quota, memory.
func (r *rig) resources(name string) string {
	c, _ := r.Container("web-n/" + name)
	return fmt.Sprint(c.Resources.GetCpuShares(), c.Resources.GetCpuQuota(), c.Resources.GetMemoryLimitInBytes()>>20)
}

func TestAResizeChangesTheRunningContainer(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		r.ForgetCalls()
		next := pair("cpu: 100m, memory: 64Mi}, limits: {cpu: 200m", "cpu: 300m, memory: 64Mi}, limits: {cpu: 400m")
		r.want(next)
		r.after(time.Minute)
		if got := was.changed(r.ran()); len(got) > 0 || r.callsMade() != "UpdateContainerResources 1" {
			r.Errorf("changed %v by %s", got, r.callsMade())
		}
		if a, b := r.resources("a"), r.resources("b"); a != "307 40000 64" || b != "102 20000 64" {
			r.Errorf("a has %s, b %s", a, b)
		}
		st := r.status("default/web-n").ContainerStatuses[0]
		if cpu := st.Resources.Limits[v1.ResourceCPU]; cpu.String() != "400m" {
			r.Errorf("reported: %s", cpu.String())
		}
		if cpu := st.AllocatedResources[v1.ResourceCPU]; cpu.String() != "300m" {
			r.Errorf("allocated: %s", cpu.String())
		}
		r.accepted(next)
		if c := r.checkpoint("web-n"); c.Following != nil {
			r.Errorf("still to follow: %+v", c.Following)
		}
	})
}

// less is the pair whose container a has half the memory.
func less() string {
	return pair("memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}", "memory: 32Mi}, limits: {cpu: 200m, memory: 32Mi}")
}

func TestMemoryIsNotTakenThatIsInUse(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		r.SetUse("web-n/a", critest.Use{WorkingSet: 50 << 20})
		was := r.ran()
		r.ForgetCalls()
		r.want(less())
		r.after(time.Hour)
		if got := was.changed(r.ran()); len(got) > 0 || r.callsMade() != "" {
			r.Errorf("changed %v by %s", got, r.callsMade())
		}
		p, _ := r.store.Pod("default/web-n")
		k := slices.IndexFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress })
		if k < 0 || !strings.Contains(p.Status.Conditions[k].Message, "container a uses 50Mi of memory and is to have 32Mi") {
			r.Errorf("conditions %+v", p.Status.Conditions)
		}
		if n := r.Count("ListContainerStats"); n > 500 {
			r.Errorf("asked %d times in an hour", n)
		}
		r.SetUse("web-n/a", critest.Use{WorkingSet: 20 << 20})
		r.after(time.Minute)
		if got := r.resources("a"); got != "102 20000 32" || len(was.changed(r.ran())) > 0 {
			r.Errorf("a has %s", got)
		}
		p, _ = r.store.Pod("default/web-n")
		if slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress }) {
			r.Errorf("conditions %+v", p.Status.Conditions)
		}
	})
}

// podMemory is the memory of the cgroup of the only pod, web-n, on a kernel that is played.
type podMemory struct {
	*rig
	cfg cgroups.Config
}

// onBothVersions runs a test with pods' cgroups on kernels of v1 and of v2.
func onBothVersions(t *testing.T, test func(r *rig, m podMemory)) {
	for name, version := range map[string]func(testing.TB) cgroups.Config{"v1": cgrouptest.V1, "v2": cgrouptest.V2} {
		t.Run(name, func(t *testing.T) {
			cfg := version(t)
			g, _ := cgroupsOn(t, cfg)
			liveWith(t, func(r *rig) { r.cgroups = g }, func(r *rig) { test(r, podMemory{r, cfg}) })
		})
	}
}

func (m podMemory) path() string {
	return filepath.Join("kubepods/burstable", "pod"+string(m.checkpoint("web-n").Pod.UID))
}

func (m podMemory) limit() string {
	if m.cgroups.Manager.Unified() {
		return cgrouptest.Value(m.cfg, m.path(), "memory.max")
	}
	return cgrouptest.Value(m.cfg, "memory", m.path(), "memory.limit_in_bytes")
}

func (m podMemory) use(all, reclaimable int64) {
	cgrouptest.Use(m.T, m.cfg, m.path(), all, reclaimable)
}

// resizes returns what the pod's status says of its resize; "": none is under way.
func (r *rig) resizes(name string) string {
	r.Helper()
	for _, c := range r.status("default/" + name).Conditions {
		if c.Type == v1.PodResizeInProgress {
			return strings.TrimSpace(c.Reason + " " + c.Message)
		}
	}
	return ""
}

// A kernel that has no file for one of a pod's values, such as that of a huge page size, keeps no
// resize from its end.
func TestAResizeEndsWhereTheKernelLacksAValue(t *testing.T) {
	for name, version := range map[string]func(testing.TB) cgroups.Config{"v1": cgrouptest.V1, "v2": cgrouptest.V2} {
		t.Run(name, func(t *testing.T) {
			cfg := version(t)
			mkdir := cfg.Mkdir
			cfg.Mkdir = func(dir string) error {
				err := mkdir(dir)
				for _, file := range []string{"hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"} {
					_ = os.Remove(filepath.Join(dir, file))
				}
				return err
			}
			g, _ := cgroupsOn(t, cfg)
			liveWith(t, func(r *rig) { r.cgroups = g }, func(r *rig) {
				r.want(pair())
				r.after(time.Minute)
				r.want(less())
				r.after(time.Minute)
				if c := r.checkpoint("web-n"); c.Following != nil {
					r.Errorf("still to follow: %+v; %s", c.Following, strings.Join(r.happened("web-n"), "\n"))
				}
				if got, want := (podMemory{r, cfg}).limit(), fmt.Sprint(96<<20); got != want {
					r.Errorf("the limit is %s, want %s", got, want)
				}
			})
		})
	}
}

// What containers that are gone left in memory volumes is the pod's, and no container's.
func TestMemoryOfThePodIsNotTakenThatIsInUse(t *testing.T) {
	const mib = 1 << 20
	whole := func(limit string) string {
		return strings.Replace(pair(), "  containers:", "  resources: {limits: {memory: "+limit+"}}\n  containers:", 1)
	}
	for _, row := range []struct {
		name, doc, next string
		was, is, uses   int64 // MiB
	}{
		{"a container is to have less", pair(), less(), 128, 96, 100},
		{"the pod is to have less", whole("256Mi"), whole("160Mi"), 256, 160, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			onBothVersions(t, func(r *rig, m podMemory) {
				r.want(row.doc)
				r.after(time.Minute)
				was := r.ran()
				m.use(row.uses*mib, 0)
				why := fmt.Sprintf("the pod uses %dMi of memory, its volumes in memory included, and is to have %dMi: it is resized once it uses less", row.uses, row.is)
				waits := func() {
					r.Helper()
					if got := r.resizes("web-n"); m.limit() != fmt.Sprint(row.was*mib) || got != "Error "+why {
						r.Errorf("the limit is %s; resize %q", m.limit(), got)
					}
				}
				r.want(row.next)
				r.after(time.Hour)
				waits()
				if got := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(got, "Warning ResizeWaits") || !strings.Contains(got, why) {
					r.Errorf("events %s", got)
				}
				r.kill()
				r.cgroups, _ = cgroupsOn(r.T, m.cfg)
				r.start()
				r.want(row.next)
				r.after(time.Minute)
				waits()
				m.use(row.uses*mib, (row.uses-row.is)*mib)
				r.after(10 * time.Minute)
				if got := r.resizes("web-n"); m.limit() != fmt.Sprint(row.is*mib) || got != "" || len(was.changed(r.ran())) > 0 {
					r.Errorf("once it can be reclaimed: the limit is %s; resize %q; changed %v", m.limit(), got, was.changed(r.ran()))
				}
			})
		})
	}
}

// A sandbox that is made again while a resize waits lowers nothing either: what is in memory
// volumes outlived the one before.
func TestASandboxThatIsMadeAgainTakesNoMemoryThatIsInUse(t *testing.T) {
	onBothVersions(t, func(r *rig, m podMemory) {
		r.want(pair())
		r.after(time.Minute)
		m.use(100<<20, 0)
		r.want(less())
		r.after(time.Minute)
		r.KillSandbox("web-n")
		r.after(10 * time.Minute)
		if got := m.limit(); got != "134217728" || len(r.Running()) != 2 {
			r.Errorf("the limit is %s; running %v", got, r.Running())
		}
		m.use(90<<20, 0)
		r.after(10 * time.Minute)
		if got := m.limit(); got != "100663296" {
			r.Errorf("the limit is %s", got)
		}
	})
}

func TestAContainerRestartsThatTheRuntimeDoesNotResize(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		r.Fault(critest.On("UpdateContainerResources").Fail(codes.Unimplemented, "not today"))
		r.want(less())
		r.after(time.Minute)
		if got := strings.Join(was.changed(r.ran()), " "); got != "a" || r.resources("a") != "102 20000 32" {
			r.Errorf("changed: %s; a has %s", got, r.resources("a"))
		}
		if c := r.checkpoint("web-n"); c.Following != nil {
			r.Errorf("still to follow: %+v", c.Following)
		}
	})
}

func TestAResizeThatDoesNotFitWaits(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "1", "memory", "1Gi", "pods", "110") }, func(r *rig) {
		r.want(pair(), cpuPod("other", "img:1", 0))
		r.after(time.Minute)
		next := pair("cpu: 100m, memory: 64Mi}, limits: {cpu: 200m", "cpu: 950m, memory: 64Mi}, limits: {cpu: 1")
		r.stopsNothing(func() {
			r.want(next, cpuPod("other", "img:1", 0))
			r.after(time.Hour)
		})
		if words := r.words("default/web-n"); r.Count("UpdateContainerResources") > 0 || !strings.Contains(words, "update waits: ") || !strings.Contains(words, "cpu") {
			r.Errorf("it says %q", words)
		}
		fits := pair("cpu: 100m, memory: 64Mi}, limits: {cpu: 200m", "cpu: 850m, memory: 64Mi}, limits: {cpu: 1")
		r.want(fits, cpuPod("other", "img:1", 0)) // with what it has counted as free
		r.after(time.Minute)
		if r.Count("UpdateContainerResources") != 1 {
			r.Errorf("calls: %s", r.callsMade())
		}
		r.accepted(fits)
	})
}

// spoilRecord keeps the checkpoint of the only pod from being written until the result is
// called.
func (r *rig) spoilRecord() (mend func()) {
	r.Helper()
	files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json"))
	if len(files) != 1 {
		r.Fatal(files)
	}
	return pin(r.T, files[0])
}

// A full disk keeps a version from being accepted; the one before runs on, and restarts.
func TestAVersionThatCannotBeSavedChangesNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		was := r.ran()
		mend := r.spoilRecord()
		r.want(pair("b1", "b2"))
		r.after(time.Minute)
		r.Exit("b", 1)
		r.after(time.Minute)
		if len(r.Running()) != 2 {
			r.Errorf("there run %v", r.Running())
		}
		for _, c := range r.Containers() {
			if c.State == 1 && c.Name == "b" && c.Config.Command[0] != "b1" {
				r.Errorf("b runs %v", c.Config.Command)
			}
		}
		mend()
		r.after(time.Minute)
		if got := strings.Join(was.changed(r.ran()), " "); got != "b" {
			r.Errorf("changed: %s", got)
		}
		r.accepted(pair("b1", "b2"))
	})
}

// Containers are probed as their accepted version says, also while the next one cannot be saved.
func TestAVersionThatCannotBeSavedProbesNothing(t *testing.T) {
	live(t, func(r *rig) {
		probed := 0
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			probed++
			return "sick", 1, nil
		})
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		mend := r.spoilRecord()
		next := strings.Replace(manifest("web", "img:1"), `"img:1"}`, `"img:1", livenessProbe: {exec: {command: [x]}, periodSeconds: 1, failureThreshold: 1}}`, 1)
		r.want(next)
		r.after(20 * time.Minute)
		if probed > 0 || strings.Contains(r.log.String(), "probe fails") {
			r.Errorf("probed %d times", probed)
		}
		mend()
		r.after(time.Minute)
		if probed == 0 {
			r.Error("the accepted version is not probed")
		}
	})
}

// A resize that ends after another version was accepted is not that version's.
func TestALateResizeIsNotTheNextVersions(t *testing.T) {
	live(t, func(r *rig) {
		r.want(pair())
		r.after(time.Minute)
		r.Fault(critest.On("UpdateContainerResources").Times(1).Delay(3 * time.Second))
		r.want(pair("limits: {cpu: 200m", "limits: {cpu: 400m"))
		r.after(time.Second)
		r.want(pair("limits: {cpu: 200m", "limits: {cpu: 300m"))
		r.after(time.Minute)
		if a := r.resources("a"); a != "102 30000 64" {
			r.Errorf("a has %s", a)
		}
	})
}
