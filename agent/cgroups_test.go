package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/gc"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// The values are those of the kubelet's recordings.
func TestPodCgroup(t *testing.T) {
	small, none := someResources("100m", "200m", "16Mi", "32Mi"), someResources("", "", "", "")
	pod := someResources("200m", "400m", "64Mi", "96Mi")
	for _, c := range []struct {
		name          string
		change        func(s *v1.PodSpec)
		class         cgroups.Class
		shares, quota int64
		memory        int64
	}{
		{"nothing", func(s *v1.PodSpec) {}, cgroups.BestEffort, 2, 0, 0},
		{"guaranteed", func(s *v1.PodSpec) { s.Containers[0].Resources = someResources("500m", "500m", "64Mi", "64Mi") }, cgroups.Guaranteed, 512, 50000, 64 << 20},
		{"burstable", func(s *v1.PodSpec) { s.Containers[0].Resources = small }, cgroups.Burstable, 102, 20000, 32 << 20},
		{"a little cpu", func(s *v1.PodSpec) { s.Containers[0].Resources = someResources("1m", "1m", "", "") }, cgroups.Burstable, 2, 1000, 0},
		{"a limit of memory alone", func(s *v1.PodSpec) { s.Containers[0].Resources = someResources("", "", "32Mi", "32Mi") }, cgroups.Burstable, 2, 0, 32 << 20},
		{"one without limits", func(s *v1.PodSpec) { s.Containers = containers(small, none) }, cgroups.Burstable, 102, 0, 0},
		{"an init container without limits", func(s *v1.PodSpec) {
			s.Containers[0].Resources, s.InitContainers = small, containers(none)
		}, cgroups.Burstable, 102, 0, 0},
		{"a sidecar before it lends its limits", func(s *v1.PodSpec) {
			s.Containers[0].Resources, s.InitContainers = small, containers(small, none)
			s.InitContainers[0].RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}, cgroups.Burstable, 204, 40000, 64 << 20},
		{"an init container that needs most", func(s *v1.PodSpec) {
			s.Containers[0].Resources, s.InitContainers = small, containers(someResources("700m", "700m", "64Mi", "64Mi"))
		}, cgroups.Burstable, 716, 70000, 64 << 20},
		{"the pod as a whole", func(s *v1.PodSpec) { s.Containers, s.Resources = containers(small, none), &pod }, cgroups.Burstable, 204, 40000, 96 << 20},
		{"overhead, where there is a limit", func(s *v1.PodSpec) {
			s.Containers[0].Resources, s.Overhead = someResources("100m", "200m", "16Mi", ""), someResources("100m", "", "16Mi", "").Requests
		}, cgroups.Burstable, 204, 30000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := somePod(func(p *v1.Pod) { c.change(&p.Spec) })
			r := podspec.PodCgroup(p, someHost())
			if class := podspec.CgroupClass(p); class != c.class || r.Shares != c.shares || r.Quota != c.quota || r.Memory != c.memory {
				t.Errorf("got %q %+v, want %+v", class, r, c)
			}
		})
	}
}

func containers(all ...v1.ResourceRequirements) (out []v1.Container) {
	for k, r := range all {
		out = append(out, v1.Container{Name: string(rune('a' + k)), Resources: r})
	}
	return out
}

func TestPodCgroupHugePages(t *testing.T) {
	n := someHost()
	n.HugePageSizes, n.NoCFSQuota = []string{"2MB", "1GB"}, true
	p := somePod(func(p *v1.Pod) {
		r := someResources("100m", "100m", "32Mi", "32Mi")
		r.Requests["hugepages-2Mi"], r.Limits["hugepages-2Mi"] = resource.MustParse("4Mi"), resource.MustParse("4Mi")
		p.Spec.Containers[0].Resources = r
	})
	r := podspec.PodCgroup(p, n)
	if len(r.HugePages) != 2 || r.HugePages["2MB"] != 4<<20 || r.HugePages["1GB"] != 0 {
		t.Errorf("huge pages %v, want 4 MiB of 2MB and none of 1GB", r.HugePages)
	}
	if r.Quota != -1 {
		t.Errorf("quota %d where limits are not enforced, want -1", r.Quota)
	}
}

// cgroupRig is pods' cgroups on a kernel that is played.
func cgroupRig(t *testing.T) (*node.PodCgroups, cgroups.Config, *strings.Builder) {
	cfg := cgrouptest.V1(t)
	g, said := cgroupsOn(t, cfg)
	return g, cfg, said
}

// cgroupsOn is pods' cgroups on that kernel.
func cgroupsOn(t *testing.T, cfg cgroups.Config) (*node.PodCgroups, *strings.Builder) {
	m, err := cgroups.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	g := &node.PodCgroups{Metrics: metrics.New(metrics.Config{}), Manager: m, Machine: &node.Node{Base: podspec.Host{Memory: 1 << 30}}, Log: slog.New(slog.NewTextHandler(said, nil)), Burstable: map[string]int64{}}
	return g, said
}

func asks(uid, cpu string) *v1.Pod {
	return somePod(func(p *v1.Pod) {
		p.UID, p.Spec.Containers[0].Resources = types.UID(uid), someResources(cpu, "", "", "")
	})
}

func TestWeighsBurstablePods(t *testing.T) {
	g, cfg, said := cgroupRig(t)
	weight := func(when, want string) {
		t.Helper()
		if got := cgrouptest.Value(cfg, "cpu/kubepods/burstable/cpu.shares"); got != want {
			t.Errorf("%s: cpu.shares %s, want %s", when, got, want)
		}
	}
	g.Count(asks("old", "250m")) // from its checkpoint
	if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Fatal(err)
	}
	weight("at the start", "256")
	n := someHost()
	n.HugePageSizes = nil
	for _, p := range []*v1.Pod{asks("a", "100m"), asks("b", "500m"), asks("c", ""), asks("b", "500m")} {
		if err := g.Create(t.Context(), p, n); err != nil {
			t.Fatal(err)
		}
	}
	weight("with three", "870")
	if err := g.Destroy(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	weight("without one", "358")
	if said.Len() > 0 && strings.Contains(said.String(), "WARN") {
		t.Error(said)
	}
}

func TestRefreshesLevelsEachMinute(t *testing.T) {
	g, cfg, _ := cgroupRig(t)
	file := filepath.Join(cfg.Mount, "cpu/kubepods/burstable/cpu.shares")
	synctest.Test(t, func(t *testing.T) {
		g.Count(asks("a", "500m"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := g.SetUp(ctx, cgroups.Cgroupfs); err != nil {
			t.Fatal(err)
		}
		go g.Run(ctx)
		if err := os.WriteFile(file, []byte("9\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(node.LevelsEvery + time.Second)
		synctest.Wait()
		if got := cgrouptest.Value(cfg, "cpu/kubepods/burstable/cpu.shares"); got != "512" {
			t.Errorf("cpu.shares %s, want 512", got)
		}
	})
}

func TestSweepsOnlyOurCgroups(t *testing.T) {
	g, cfg, _ := cgroupRig(t)
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		uid, file string // in the root dir
		running   bool
		stays     bool
	}{
		{"theirs", "", false, true},
		{"ours", "pods/ours/pod.json", false, true},
		{"half-removed", "pods/half-removed/volumes", false, false},
		{"half-removed-running", "pods/half-removed-running/volumes", true, true},
	}
	running := map[manifests.Key]*pleg.Listed{{}: {}}
	for _, row := range rows {
		err := g.Create(t.Context(), asks(row.uid, "100m"), someHost())
		if row.file != "" {
			err = errors.Join(err, os.MkdirAll(r.Path(filepath.Dir(row.file)), 0o755), os.WriteFile(r.Path(row.file), nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
		if row.running {
			running[manifests.Key{}].Sandboxes = append(running[manifests.Key{}].Sandboxes, &rt.PodSandbox{Labels: map[string]string{podspec.LabelPodUID: row.uid}})
		}
	}
	(&gc.Garbage{Root: r, Metrics: metrics.New(metrics.Config{}), Cgroups: g, Log: slog.Default()}).Collect(t.Context(), running, true)
	for _, row := range rows {
		if stays := cgrouptest.Value(cfg, "cpu/kubepods/burstable/pod"+row.uid+"/cgroup.procs") == ""; stays != row.stays {
			t.Errorf("%s: is there: %v, want %v", row.uid, stays, row.stays)
		}
	}
}

func TestFollowsTheRuntimesDriver(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(r *critest.Runtime)
		want  cgroups.Driver
		fails bool // as there is no systemd to talk to
	}{
		{"cgroupfs", func(r *critest.Runtime) {}, cgroups.Cgroupfs, false},
		{"one that does not say", func(r *critest.Runtime) { r.LikeContainerd16() }, cgroups.Cgroupfs, false},
		{"systemd", func(r *critest.Runtime) { r.SetCgroupDriver(rt.CgroupDriver_SYSTEMD) }, cgroups.Systemd, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere")
			g, _, _ := cgroupRig(t)
			runtime := critest.New(t)
			c.set(runtime)
			var ended error
			err := g.Follow(t.Context(), cri.New(runtime.Conn()), func(cause error) { ended = cause })
			if c.fails != (err != nil) || c.fails != (ended != nil) || g.Manager.Names().Driver != c.want {
				t.Fatalf("driver %q, error %v, ended by %v", g.Manager.Names().Driver, err, ended)
			}
			if c.fails && !strings.Contains(ended.Error(), "--cgroup-driver none") {
				t.Errorf("%v does not say what to do", ended)
			}
			if parent := g.Machine.Base.Cgroups.Pod(cgroups.Burstable, "u"); !c.fails && parent != "/kubepods/burstable/podu" {
				t.Errorf("sandboxes go under %q", parent)
			}
		})
	}
}

func TestARuntimeWithAnotherDriverIsComplainedOf(t *testing.T) {
	g, _, log := cgroupRig(t)
	runtime := critest.New(t)
	follow := func() {
		t.Helper()
		if err := g.Follow(t.Context(), cri.New(runtime.Conn()), func(err error) { t.Errorf("ends: %v", err) }); err != nil {
			t.Fatal(err)
		}
	}
	follow()
	follow() // it went and came
	if strings.Contains(log.String(), "another cgroup driver") {
		t.Errorf("complains of the same driver:\n%s", log)
	}
	runtime.SetCgroupDriver(rt.CgroupDriver_SYSTEMD)
	follow()
	follow()
	if text := log.String(); strings.Count(text, "another cgroup driver") != 1 || !strings.Contains(text, "driver=cgroupfs runtime=systemd") {
		t.Errorf("says nothing of it:\n%s", text)
	}
	if d := g.Manager.Names().Driver; d != cgroups.Cgroupfs {
		t.Errorf("the driver is %s now", d)
	}
}

func TestAPodsCgroupIsThereWhileAnythingRuns(t *testing.T) {
	live(t, func(r *rig) {
		g, cfg, _ := cgroupRig(t)
		g.Machine = r.sync.shared.Disk.Machine
		if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
			t.Fatal(err)
		}
		r.sync.shared.Disk.Cgroups = g
		seen := map[string]int{} // uids with a cgroup, when that is called
		for _, method := range []string{"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"} {
			r.Fault(critest.On(method).Before(func() { seen[method] = len(g.Manager.Pods()) }))
		}
		r.want(manifest("web", "img:1"))
		uid := r.Sandboxes()[0].Config.Metadata.Uid
		if parent := r.Sandboxes()[0].Config.Linux.CgroupParent; parent != "/kubepods/besteffort/pod"+uid {
			t.Errorf("the sandbox goes under %q", parent)
		}
		if shares := cgrouptest.Value(cfg, "cpu/kubepods/besteffort/pod"+uid+"/cpu.shares"); shares != "2" {
			t.Errorf("cpu.shares %s, want 2", shares)
		}
		r.want()
		r.after(31 * time.Second)
		if seen["RunPodSandbox"] != 1 || seen["StopPodSandbox"] != 1 || seen["RemovePodSandbox"] != 1 {
			t.Errorf("the cgroup is not there all the time: %v", seen)
		}
		if left := g.Manager.Pods(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestAPodThatEndedHasNoCgroup(t *testing.T) {
	live(t, func(r *rig) {
		g, _, _ := cgroupRig(t)
		g.Machine = r.sync.shared.Disk.Machine
		if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
			t.Fatal(err)
		}
		r.sync.shared.Disk.Cgroups = g
		r.want(manifest("job", "img:1", "restartPolicy: Never"))
		if len(g.Manager.Pods()) != 1 {
			t.Error("it has no cgroup while it runs")
		}
		r.Exit("c", 0)
		r.after(time.Second)
		if phase := r.status("default/job-n").Phase; phase != v1.PodSucceeded {
			t.Fatalf("phase %s", phase)
		}
		if left := g.Manager.Pods(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestPodsWithoutCgroups(t *testing.T) {
	g, err := node.NewPodCgroups(&node.Node{Cfg: node.NodeSettings{CgroupDriver: node.DriverNone}}, metrics.New(metrics.Config{}), nil)
	if g != nil || err != nil {
		t.Fatalf("got %v, %v", g, err)
	}
	g.Run(t.Context())
	err = errors.Join(g.Follow(t.Context(), nil, nil), g.Create(t.Context(), nil, nil), g.Destroy(t.Context(), "u"))
	if err != nil {
		t.Error(err)
	}
	config, err := podspec.SandboxConfig(somePod(func(*v1.Pod) {}), 0, someHost())
	if err != nil || config.Linux.CgroupParent != "" {
		t.Errorf("cgroup parent %q, %v", config.GetLinux().GetCgroupParent(), err)
	}
}
