package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/metrics"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

// holding returns cgroups of pods on a machine whose system is held to what is reserved for it, and
// what is logged.
func holding(t *testing.T, cfg cgroups.Config, amounts v1.ResourceList) (*PodCgroups, *strings.Builder) {
	t.Helper()
	m, err := cgroups.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	log := slog.New(slog.NewTextHandler(said, nil))
	n := &Node{Base: podspec.Host{Memory: 1 << 30}, log: log}
	n.Cfg.Reserved.Held = []Held{{Setting: "systemReservedCgroup", Level: "system-reserved", Cgroup: "/system.slice", Amounts: amounts}}
	return &PodCgroups{Metrics: metrics.New(metrics.Config{}), Manager: m, Machine: n, Log: log, Burstable: map[string]int64{}}, said
}

func TestTheSystemIsHeldToWhatIsReserved(t *testing.T) {
	cfg := cgrouptest.V2(t)
	g, said := holding(t, cfg, v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("64Mi"), "pid": resource.MustParse("100")})
	if err := cfg.Mkdir(filepath.Join(cfg.Mount, "system.slice")); err != nil {
		t.Fatal(err)
	}
	if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Fatal(err)
	}
	held := func(want string) {
		t.Helper()
		var got []string
		for _, file := range []string{"cpu.weight", "memory.max", "pids.max"} {
			got = append(got, cgrouptest.Value(cfg, "system.slice/"+file))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("held to %s, want %s", text, want)
		}
	}
	held("20 67108864 100")
	if err := os.WriteFile(filepath.Join(cfg.Mount, "system.slice/memory.max"), []byte("max\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.refresh(t.Context())
	held("20 67108864 100")
	if said := said.String(); strings.Contains(said, "WARN") {
		t.Error(said)
	}
	if err := os.RemoveAll(filepath.Join(cfg.Mount, "system.slice")); err != nil {
		t.Fatal(err)
	}
	g.refresh(t.Context()) // the pods run on
	if said := said.String(); !strings.Contains(said, "there is no such cgroup") {
		t.Errorf("not said: %s", said)
	}
}

func TestACgroupThatIsMissingIsAnErrorAtStart(t *testing.T) {
	g, _ := holding(t, cgrouptest.V1(t), v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")})
	err := g.SetUp(t.Context(), cgroups.Cgroupfs)
	if !errors.Is(err, errNoCgroup) || !strings.Contains(err.Error(), "systemReservedCgroup /system.slice: there is no such cgroup") ||
		!strings.Contains(err.Error(), "/memory/system.slice") || !strings.Contains(err.Error(), "remove system-reserved from enforceNodeAllocatable") {
		t.Error(err)
	}
	if g.isReady() {
		t.Error("pods get cgroups")
	}
}

func TestWhatTheKernelRefusesIsSaid(t *testing.T) {
	cfg := cgrouptest.V2(t)
	g, said := holding(t, cfg, v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")})
	dir := filepath.Join(cfg.Mount, "system.slice")
	if err := errors.Join(cfg.Mkdir(dir), os.Remove(dir+"/memory.max"), os.Mkdir(dir+"/memory.max", 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := g.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Error(err)
	}
	if text := said.String(); !strings.Contains(text, "systemReservedCgroup: cgroup /system.slice") {
		t.Errorf("not said: %s", text)
	}
}

// What is not reserved is not limited: 0 would be no memory at all.
func TestOnlyReservedAmountsAreWritten(t *testing.T) {
	for _, row := range []struct {
		name    string
		amounts v1.ResourceList
		want    cgroups.Resources
	}{
		{"nothing", nil, cgroups.Resources{}},
		{"cpu", v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}, cgroups.Resources{Shares: 2048}},
		{"memory", v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Ki")}, cgroups.Resources{Memory: 1024}},
		{"processes", v1.ResourceList{reservedPids: resource.MustParse("9")}, cgroups.Resources{Pids: 9}},
	} {
		if got := (Held{Amounts: row.amounts}).values(); got.Shares != row.want.Shares || got.Memory != row.want.Memory || got.Pids != row.want.Pids {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
