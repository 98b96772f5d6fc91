package agent

import (
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
	"monopod/cri"
	"monopod/cri/critest"
)

func TestReservations(t *testing.T) {
	amount := func(s string) node.Threshold { return node.Threshold{Amount: resource.MustParse(s)} }
	machine := cgroups.Node{CPU: 4000, Memory: 8 << 30, Pids: 32768, CPUs: "0-3"}
	capacity := amounts("cpu", "4", "memory", "8Gi", "ephemeral-storage", "100Gi", "pods", "110")
	rows := []struct {
		name        string
		r           node.Reservations
		allocatable v1.ResourceList
		limit       cgroups.Node // of all pods' cgroup
		wrong       string
	}{
		{"nothing", node.Reservations{}, capacity, machine, ""},
		{"for the system and the agent, summed", node.Reservations{System: amounts("cpu", "500m", "memory", "1Gi", "pid", "1000"), Agent: amounts("cpu", "250m", "ephemeral-storage", "1Gi", "pid", "24")},
			amounts("cpu", "3250m", "memory", "7Gi", "ephemeral-storage", "99Gi", "pods", "110"), cgroups.Node{CPU: 3250, Memory: 7 << 30, Pids: 31744, CPUs: "0-3"}, ""},
		{"what shall stay free does not limit the cgroup", node.Reservations{System: amounts("memory", "1Gi"), Free: map[v1.ResourceName]node.Threshold{"memory": amount("1Gi")}},
			amounts("cpu", "4", "memory", "6Gi", "ephemeral-storage", "100Gi", "pods", "110"), cgroups.Node{CPU: 4000, Memory: 7 << 30, Pids: 32768, CPUs: "0-3"}, ""},
		{"shares of the capacity", node.Reservations{Free: map[v1.ResourceName]node.Threshold{"memory": {Share: 0.25}, "ephemeral-storage": {Share: 0.1}}},
			amounts("cpu", "4", "memory", "6Gi", "ephemeral-storage", "90Gi", "pods", "110"), machine, ""},
		{"reserved and not enforced", node.Reservations{System: amounts("cpu", "1", "memory", "1Gi", "pid", "10"), Unenforced: true},
			amounts("cpu", "3", "memory", "7Gi", "ephemeral-storage", "100Gi", "pods", "110"), machine, ""},
		{"all pids", node.Reservations{System: amounts("pid", "32768")}, capacity, cgroups.Node{CPU: 4000, Memory: 8 << 30, Pids: 1, CPUs: "0-3"}, ""},
		{"more than there is", node.Reservations{System: amounts("memory", "7Gi"), Free: map[v1.ResourceName]node.Threshold{"memory": amount("2Gi")}},
			amounts("cpu", "4", "memory", "0", "ephemeral-storage", "100Gi", "pods", "110"), cgroups.Node{CPU: 4000, Memory: 1 << 30, Pids: 32768, CPUs: "0-3"}, "9Gi of memory is reserved"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := node.Allocatable(capacity, row.r.Of(capacity)); !podspec.EqualAmounts(got, row.allocatable) {
				t.Errorf("allocatable %v", got)
			}
			if got := row.r.Limit(machine); got.CPU != row.limit.CPU || got.Memory != row.limit.Memory || got.Pids != row.limit.Pids || got.CPUs != row.limit.CPUs {
				t.Errorf("limits %+v, want %+v", got, row.limit)
			}
			if err := row.r.Check(capacity); (err == nil) != (row.wrong == "") || !strings.Contains(errorText(err), row.wrong) {
				t.Errorf("check: %v", err)
			}
		})
	}
}

// A pod that would fit the machine does not fit what is left of it.
func TestReservedIsNotForPods(t *testing.T) {
	cfg := node.NodeSettings{Root: t.TempDir(), NodeName: "n", MaxPods: 7, PodsPerCore: 1000}
	all, err := node.ReadFacts(cfg)
	if err != nil {
		t.Fatal(err)
	}
	half := all.Capacity.Memory().Value() / 2
	cfg.Reserved.System = v1.ResourceList{"memory": *resource.NewQuantity(half, resource.BinarySI)}
	less, err := node.ReadFacts(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := all.Allocatable.Memory().Value() - less.Allocatable.Memory().Value(); got != half {
		t.Errorf("%d bytes less, want %d", got, half)
	}
	if n := less.Allocatable.Pods().Value(); n != 7 {
		t.Errorf("room for %d pods, want 7", n)
	}
	cfg.Reserved.System["cpu"] = resource.MustParse("100000")
	if _, err := node.New(cfg, nil, "i", slog.Default()); !strings.Contains(errorText(err), "100k of cpu is reserved by systemReserved") {
		t.Errorf("a machine with less than is reserved: %v", err)
	}
}

func TestPodsOnANode(t *testing.T) {
	for _, row := range []struct{ most, perCore, cores, want int64 }{{0, 0, 4, 110}, {20, 0, 4, 20}, {0, 10, 4, 40}, {30, 10, 4, 30}} {
		if got := (node.NodeSettings{MaxPods: row.most, PodsPerCore: row.perCore}).PodsOn(row.cores); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

func TestCgroupOfAllPodsLeavesWhatIsReserved(t *testing.T) {
	g, cfg, said := cgroupRig(t)
	g.Machine.Cfg.Reserved.System = amounts("memory", "256Mi")
	if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Fatal(err, said)
	}
	if got := cgrouptest.Value(cfg, "memory", "kubepods", "memory.limit_in_bytes"); got != "805306368" { // of the rig's 1 GiB
		t.Errorf("memory limit %q", got)
	}
}

func TestPodsPids(t *testing.T) {
	n := someHost()
	n.PodPids = 64
	for _, r := range []v1.ResourceRequirements{someResources("", "", "", ""), someResources("1", "1", "1Gi", "1Gi")} {
		if got := podspec.PodCgroup(somePod(func(p *v1.Pod) { p.Spec.Containers[0].Resources = r }), n); got.Pids != 64 {
			t.Errorf("%v: %d processes and threads, want 64", r, got.Pids)
		}
	}
}

func TestFallbackDriverIsForRuntimesThatDoNotSay(t *testing.T) {
	for name, row := range map[string]struct {
		says  bool
		fails bool // as there is no systemd to talk to
	}{"it says cgroupfs": {true, false}, "it does not say": {false, true}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere")
			g, _, _ := cgroupRig(t)
			g.Machine.Cfg.FallbackDriver = string(cgroups.Systemd)
			runtime := critest.New(t)
			if !row.says {
				runtime.LikeContainerd16()
			}
			if err := g.Follow(t.Context(), cri.New(runtime.Conn()), func(error) {}); (err != nil) != row.fails {
				t.Errorf("driver %q, %v", g.Manager.Names().Driver, err)
			}
		})
	}
}
