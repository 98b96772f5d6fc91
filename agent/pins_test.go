package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/config"
	"monopod/agent/cpus"
	"monopod/agent/node"
	"monopod/cri/critest"
)

// onCPUs runs a test with an agent on four cores of two threads, of which CPU 0 is reserved.
func onCPUs(t *testing.T, test func(*rig)) {
	liveWith(t, func(r *rig) {
		r.system = r.TempDir()
		r.describeCPUs("0-7")
		r.configure = func(c *config.Config) {
			c.CPUPolicy, c.SystemReserved = cpus.Static, amounts("cpu", "1")
		}
		r.facts = func(f *node.Facts) { f.Allocatable = amounts("cpu", "7", "memory", "8Gi", "pods", "110") }
	}, test)
}

func (r *rig) describeCPUs(online string) {
	r.Helper()
	write := func(text, format string, parts ...any) {
		path := filepath.Join(r.system, fmt.Sprintf(format, parts...))
		noErr(r.T, os.MkdirAll(filepath.Dir(path), 0o755))
		noErr(r.T, os.WriteFile(path, []byte(text), 0o644))
	}
	write(online, "cpu/online")
	for id := range 8 {
		write("0", "cpu/cpu%d/topology/physical_package_id", id)
		write(fmt.Sprint(id%4), "cpu/cpu%d/topology/core_id", id)
	}
}

// exclusive is a Guaranteed pod that requests cpus.
func exclusive(name, image, cpus string) string {
	return strings.Replace(manifest(name, image), "image:", fmt.Sprintf("resources: {limits: {cpu: %s, memory: 64Mi}}, image:", cpus), 1)
}

// runsOn checks the CPUs of containers: "pod: 1-2,5" of each.
func (r *rig) runsOn(want ...string) {
	r.Helper()
	for _, line := range want {
		pod, list, _ := strings.Cut(line, ": ")
		c, _ := r.Container(pod + "-n/c")
		if got := c.Resources.GetCpusetCpus(); got != list {
			r.Errorf("%s runs on %q, not %q", pod, got, list)
		}
	}
}

func TestAContainerIsMadeWithCPUsOfItsOwnAndWithoutLimit(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("own", "img:1", "2"), exclusive("part", "img:1", "1500m"), manifest("shared", "img:1"))
		made := func(pod string) string {
			c, _ := r.Container(pod + "-n/c")
			l := c.Config.Linux.Resources
			return fmt.Sprint(l.CpusetCpus, " ", l.CpuShares, " ", l.CpuQuota)
		}
		if got := made("own"); got != "1,5 2048 -1" {
			t.Errorf("own is made with %s", got)
		}
		if got := made("part"); got != "0,2-4,6-7 1536 150000" {
			t.Errorf("part is made with %s", got)
		}
		if got := made("shared"); got != "0,2-4,6-7 2 0" {
			t.Errorf("shared is made with %s", got)
		}
		r.after(time.Minute)
		if n := r.Count("UpdateContainerResources"); n > 0 {
			t.Errorf("%d updates", n)
		}
	})
}

func TestSharedCPUsShrinkAndGrowWhileContainersRun(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(manifest("shared", "img:1"))
		r.runsOn("shared: 0-7")
		r.want(manifest("shared", "img:1"), exclusive("own", "img:1", "2"))
		r.runsOn("shared: 0,2-4,6-7", "own: 1,5")
		r.want(manifest("shared", "img:1"))
		r.after(40 * time.Second)
		r.runsOn("shared: 0-7")
		r.expect("default/shared-n/c")
	})
}

func TestAnUpdateOfCPUsThatFailsIsDoneAgain(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(manifest("shared", "img:1"))
		r.Fault(critest.On("UpdateContainerResources").Times(1).Fail(codes.Unavailable, "not now"))
		r.want(manifest("shared", "img:1"), exclusive("own", "img:1", "2"))
		r.runsOn("shared: 0-7")
		r.after(11 * time.Second)
		r.runsOn("shared: 0,2-4,6-7")
	})
}

// Between the list and the update a container may end, and be removed.
func TestAContainerThatIsGoneNeedsNoCPUs(t *testing.T) {
	for _, row := range []struct {
		code   codes.Code
		warned bool
	}{{codes.NotFound, false}, {codes.Internal, true}} {
		onCPUs(t, func(r *rig) {
			r.want(manifest("shared", "img:1"))
			r.Fault(critest.On("UpdateContainerResources").Times(1).Fail(row.code, "no such container"))
			r.want(manifest("shared", "img:1"), exclusive("own", "img:1", "2"))
			r.after(time.Second)
			if got := strings.Contains(r.log.String(), "CPUs of a container not changed"); got != row.warned {
				t.Errorf("%s: warned %v", row.code, got)
			}
		})
	}
}

func TestCPUsStayOverARestartOfTheAgent(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("a", "img:1", "2"))
		r.want(exclusive("a", "img:1", "2"), exclusive("b", "img:1", "2"))
		r.want(exclusive("b", "img:1", "2"), manifest("shared", "img:1"))
		r.after(40 * time.Second)
		r.runsOn("b: 2,6", "shared: 0-1,3-5,7")
		text, err := os.ReadFile(filepath.Join(r.dir, "cpu_manager_state"))
		if err != nil || !strings.Contains(string(text), `"defaultCpuSet":"0-1,3-5,7"`) {
			t.Errorf("the file is %s, %v", text, err)
		}
		r.stop()
		r.start()
		r.want(exclusive("b", "img:1", "2"), manifest("shared", "img:1"), exclusive("c", "img:1", "2"))
		r.after(time.Minute)
		r.runsOn("b: 2,6", "shared: 0,3-4,7", "c: 1,5")
	})
}

func TestOnAnotherMachineCPUsAreAssignedAgain(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("own", "img:1", "2"), manifest("shared", "img:1"))
		r.after(time.Second)
		r.runsOn("own: 1,5")
		r.stop()
		r.describeCPUs("0-4,6-7")
		r.start()
		r.want(exclusive("own", "img:1", "2"), manifest("shared", "img:1"))
		r.after(11 * time.Second)
		r.runsOn("own: 0,4", "shared: 1-3,6-7")
		if !strings.Contains(r.log.String(), "CPUs are assigned again") {
			t.Error("it is not said")
		}
	})
}

func TestAPodWaitsForCPUsOfItsOwn(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("own", "img:1", "6"), manifest("shared", "img:1"))
		r.want(exclusive("own", "img:1", "6"), manifest("shared", "img:1"), exclusive("late", "img:1", "2"))
		r.after(time.Minute)
		r.expect("default/own-n/c", "default/shared-n/c")
		if words := r.words("default/late-n"); !strings.Contains(words, "UnexpectedAdmissionError") {
			t.Errorf("it says %q", words)
		}
		r.want(manifest("shared", "img:1"), exclusive("late", "img:1", "2"))
		r.after(time.Minute)
		r.expect("default/late-n/c", "default/shared-n/c")
		r.runsOn("late: 1,5", "shared: 0,2-4,6-7")
		r.shows(map[string]float64{ // the manifest of late moved while it waited: that is another refusal
			"kubelet_cpu_manager_pinning_requests_total": 4, "kubelet_cpu_manager_pinning_errors_total": 2,
			"kubelet_cpu_manager_exclusive_cpu_allocation_count": 2, "kubelet_cpu_manager_shared_pool_size_millicores": 5000,
		})
	})
}

func TestTheNextVersionMayHaveTheCPUsOfTheFormer(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.change(func(c *config.Config) { c.UpdatePolicy = "Replace" })
		r.want(exclusive("own", "img:1", "6"), manifest("shared", "img:1"))
		r.want(exclusive("own", "img:2", "5"), manifest("shared", "img:1"))
		r.after(time.Minute)
		r.expect("default/own-n/c", "default/shared-n/c")
		c, _ := r.Container("own-n/c")
		if list, err := cpus.Parse(c.Resources.GetCpusetCpus()); err != nil || len(list) != 5 || list.Has(0) {
			t.Errorf("it runs on %v, %v", list, err)
		}
		shared, _ := r.Container("shared-n/c")
		if list, err := cpus.Parse(shared.Resources.GetCpusetCpus()); err != nil || len(list) != 3 {
			t.Errorf("the other shares %v, %v", list, err)
		}
	})
}

// While a version is on trial, also over a restart of the agent, no other pod gets the CPUs that the
// former one had.
func TestAVersionThatIsRolledBackHasItsCPUsAgain(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		onCPUs(t, func(r *rig) {
			r.Program("img:2", critest.ExitsAfter(8*time.Second, 1))
			r.want(exclusive("web", "img:1", "4"))
			r.runsOn("web: 1-2,5-6")
			next := healthy("30s", exclusive("web", "img:2", "2"))
			r.want(next)
			r.runsOn("web: 1,5")
			if restarts {
				r.after(time.Second)
				r.stop()
				r.start()
			}
			r.want(next, exclusive("other", "img:1", "2"), manifest("shared", "img:1"))
			r.runsOn("web: 1,5", "other: 3,7", "shared: 0,4")
			r.after(5 * time.Minute)
			r.runsOn("web: 1-2,5-6", "other: 3,7", "shared: 0,4")
			if n := len(r.rollbacks()); n != 1 {
				t.Errorf("%d rollbacks", n)
			}
		})
	}
}

func TestWhatAFormerVersionHadIsSharedOnceTheNextOneStays(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("web", "img:1", "4"), manifest("shared", "img:1"))
		next := healthy("30s", exclusive("web", "img:2", "2"))
		r.want(next, manifest("shared", "img:1"))
		r.runsOn("web: 1,5", "shared: 0,3-4,7")
		r.after(time.Minute)
		r.runsOn("web: 1,5", "shared: 0,2-4,6-7")
	})
}

func TestPodsExchangeCPUsForAPort(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.change(func(c *config.Config) { c.UpdatePolicy = "Replace" })
		onPort := func(doc string) string {
			return strings.Replace(doc, "image:", "ports: [{containerPort: 1, hostPort: 80}], image:", 1)
		}
		r.want(exclusive("a", "img:1", "5"), onPort(exclusive("b", "img:1", "1")))
		r.want(onPort(exclusive("a", "img:2", "1")), exclusive("b", "img:2", "5"))
		r.after(time.Minute)
		r.expect("default/a-n/c", "default/b-n/c")
		for pod, want := range map[string]int{"a-n/c": 1, "b-n/c": 5} {
			c, _ := r.Container(pod)
			if list, _ := cpus.Parse(c.Resources.GetCpusetCpus()); len(list) != want {
				t.Errorf("%s runs on %v", pod, list)
			}
		}
	})
}

func TestAStoppedPodFreesItsCPUsAndGetsOthers(t *testing.T) {
	onCPUs(t, func(r *rig) {
		r.want(exclusive("own", "img:1", "4"), manifest("shared", "img:1"))
		r.stops("own")
		r.after(time.Minute)
		r.runsOn("shared: 0-7")
		r.starts("own")
		r.after(time.Minute)
		c, _ := r.Container("own-n/c")
		if list, _ := cpus.Parse(c.Resources.GetCpusetCpus()); len(list) != 4 {
			t.Errorf("it runs on %v", list)
		}
	})
}

func TestWithoutAPolicyNoContainerHasCPUs(t *testing.T) {
	live(t, func(r *rig) {
		r.want(exclusive("own", "img:1", "1"))
		r.after(time.Minute)
		r.runsOn("own: ")
		if _, err := os.Stat(filepath.Join(r.dir, "cpu_manager_state")); err == nil || r.Count("UpdateContainerResources") > 0 {
			t.Errorf("there is a record, or %d updates", r.Count("UpdateContainerResources"))
		}
	})
}
