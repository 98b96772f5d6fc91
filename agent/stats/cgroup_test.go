package stats

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup1"
	v1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	"github.com/containerd/cgroups/v3/cgroup2"
)

// cgroups of the recorded machines that have all that is read.
const (
	podV1 = "/kubepods/burstable/podabc"
	podV2 = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podabc.slice"
)

// A number whose file is missing is not known, and no other number goes with it but
// those of the same controller of v1, which have all their files in every kernel.
func TestWhatHasNoFileIsUnknown(t *testing.T) {
	for _, row := range []struct{ tree, path, files, lost string }{
		{"v2", podV2, "cpu.stat", "CPU CPUPressure Period Periods Quota System Throttled ThrottledFor User"},
		{"v2", podV2, "cpu.max", "Period Periods Quota Throttled ThrottledFor"},
		{"v2", podV2, "cpu.pressure", "CPUPressure"},
		{"v2", podV2, "memory.stat", "Cache Faults MajorFaults Mapped Memory MemoryLimit MemoryPeak RSS Swap WorkingSet"},
		{"v2", podV2, "memory.swap.current memory.swap.max", "Swap"},
		{"v2", podV2, "memory.peak", "MemoryPeak"},
		{"v2", podV2, "memory.max", "MemoryLimit"},
		{"v2", podV2, "memory.events", "MemoryFails OOMKills"},
		{"v2", podV2, "pids.current pids.max", "MaxThreads Threads"},
		{"v2", podV2, "io.stat io.pressure", "Disks IOPressure"},
		{"v2", podV2, "cpu.weight", "Shares"},
		{"v1", podV1, "memory/memory.memsw.limit_in_bytes", ""},
		{"v1", podV1, "cpuacct/cpuacct.stat", "CPU System User"},
		{"v1", podV1, "cpu/cpu.stat", "Periods Throttled ThrottledFor"},
		{"v1", podV1, "cpu/cpu.shares", "Shares"},
		{"v1", podV1, "pids/pids.current pids/pids.max", "MaxThreads Threads"},
		{"v1", podV1, "memory/memory.failcnt", "Cache Faults MajorFaults Mapped Memory MemoryFails MemoryLimit MemoryPeak OOMKills RSS WorkingSet"},
		{"v1", podV1, "blkio/blkio.throttle.io_serviced_recursive blkio/blkio.throttle.io_service_bytes_recursive", "Disks"},
	} {
		t.Run(row.tree+" "+row.files, func(t *testing.T) {
			h := plant(t, row.tree)
			before := knownOf(h.hierarchy().read(row.path))
			for file := range strings.FieldsSeq(row.files) {
				controller, name := filepath.Split(file)
				if err := os.Remove(filepath.Join(h.Cgroup, controller, row.path, name)); err != nil {
					t.Fatal(err)
				}
			}
			after := knownOf(h.hierarchy().read(row.path))
			lost := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
			if got := strings.Join(lost, " "); got != row.lost {
				t.Errorf("lost %q, want %q", got, row.lost)
			}
		})
	}
}

// knownOf returns the names of what is known of a use, sorted.
func knownOf(u *use) (names []string) {
	v := reflect.ValueOf(*u)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	slices.Sort(names)
	return names
}

// Swap that is forbidden is a limit of 0, not one that is unknown.
func TestForbiddenSwapIsALimit(t *testing.T) {
	h := plant(t, "v2")
	put(t, h.Cgroup, podV2+"/memory.swap.max", "0\n")
	if u := h.hierarchy().read(podV2); u.SwapLimit == nil || *u.SwapLimit != 0 {
		t.Errorf("the limit of swap is %v", u.SwapLimit)
	}
}

// The day that one of these fails, what is ours for its sake may go.
func TestWhatTheLibraryDoesNotTell(t *testing.T) {
	g, err := cgroup2.Load("/", cgroup2.WithMountpoint(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := g.StatFiltered(cgroup2.StatCPU | cgroup2.StatMemory | cgroup2.StatPids)
	if err != nil || m.CPU == nil || m.Memory == nil || m.Pids == nil {
		t.Errorf("v2 tells a missing file from a zero (hierarchy.has): %v, %v", m, err)
	}
	if _, there := reflect.TypeFor[v1.MemoryStat]().FieldByName("TotalSwap"); there {
		t.Error("v1 tells of swap (readRestV1)")
	}
	dir := t.TempDir()
	put(t, dir, "partitions", "")
	for name, n := range map[string]string{"io_serviced": "1", "io_serviced_recursive": "2", "io_service_bytes": "1", "io_service_bytes_recursive": "2"} {
		put(t, dir, "blkio/blkio.throttle."+name, "8:0 Read "+n+"\n")
	}
	disks := &v1.Metrics{}
	if err := cgroup1.NewBlkio(dir, cgroup1.ProcRoot(dir)).Stat("/", disks); err != nil {
		t.Fatal(err)
	}
	if len(disks.Blkio.IoServicedRecursive) != 1 || disks.Blkio.IoServicedRecursive[0].Value != 1 {
		t.Errorf("v1 reads disks with the cgroups below (readDisksV1): %v", disks.Blkio)
	}
}
