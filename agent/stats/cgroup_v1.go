package stats

import (
	"maps"
	"slices"

	"github.com/containerd/cgroups/v3/cgroup1"
	v1 "github.com/containerd/cgroups/v3/cgroup1/stats"
)

func (h hierarchy) readCPUV1(path string, u *use) {
	m := &v1.Metrics{CPU: &v1.CPUStat{Usage: &v1.CPUUsage{}}}
	if cgroup1.NewCpuacct(h.mount).Stat(path, m) == nil {
		u.CPU, u.User, u.System = known(m.CPU.Usage.Total), known(m.CPU.Usage.User), known(m.CPU.Usage.Kernel)
	}
}

// readV1 reads each controller separately, so that a missing file affects only its own.
func (h hierarchy) readV1(path string, u *use) {
	m := &v1.Metrics{CPU: &v1.CPUStat{Throttling: &v1.Throttle{}}}
	if cgroup1.NewCpu(h.mount).Stat(path, m) == nil {
		t := m.CPU.Throttling
		u.Periods, u.Throttled, u.ThrottledFor = known(t.Periods), known(t.ThrottledPeriods), known(t.ThrottledTime)
	}
	if cgroup1.NewPids(h.mount).Stat(path, m) == nil {
		u.Threads, u.MaxThreads = known(m.Pids.Current), limit(m.Pids.Limit)
	}
	h.readMemoryV1(path, u)
	h.readRestV1(path, u)
}

// readMemoryV1 reads the memory of a cgroup, with those below it.
func (h hierarchy) readMemoryV1(path string, u *use) {
	m := &v1.Metrics{}
	// Only one file about swap is used, and kernels may lack it; newer ones lack those of kmem.
	if cgroup1.NewMemory(h.mount, cgroup1.IgnoreModules("memsw", "kmem", "kmem.tcp")).Stat(path, m) == nil {
		u.RSS, u.Cache, u.Mapped = known(m.Memory.TotalRSS), known(m.Memory.TotalCache), known(m.Memory.TotalMappedFile)
		u.Faults, u.MajorFaults = known(m.Memory.TotalPgFault), known(m.Memory.TotalPgMajFault)
		u.Memory, u.MemoryPeak, u.MemoryFails = known(m.Memory.Usage.Usage), known(m.Memory.Usage.Max), known(m.Memory.Usage.Failcnt)
		u.WorkingSet, u.MemoryLimit = less(u.Memory, known(m.Memory.TotalInactiveFile)), limit(m.Memory.Usage.Limit)
		u.OOMKills = known(m.MemoryOomControl.OomKill)
	}
}

// readRestV1 reads what the library does not.
func (h hierarchy) readRestV1(path string, u *use) {
	u.Shares = number(h.file("cpu", path, "cpu.shares"))
	u.Quota = number(h.file("cpu", path, "cpu.cfs_quota_us")) // -1 is no number
	u.Period = number(h.file("cpu", path, "cpu.cfs_period_us"))
	memory, _ := ReadFile(h.file("memory", path, "memory.stat"))
	u.Swap = valueOf(memory, "total_swap")
	if n := number(h.file("memory", path, "memory.memsw.limit_in_bytes")); n != nil {
		u.SwapLimit = less(limit(*n), u.MemoryLimit)
	}
	h.readDisksV1(path, u)
}

// readDisksV1 reads the same as the kubelet, including all cgroups below. The library reads only
// the pod's own cgroup, which has no processes.
func (h hierarchy) readDisksV1(path string, u *use) {
	disks := map[string]*diskUse{}
	for _, file := range []string{"io_service_bytes", "io_serviced"} {
		for _, f := range lines(h.file("blkio", path, "blkio.throttle."+file+"_recursive")) {
			if len(f) != 3 || parse(f[2]) == nil {
				continue
			}
			d := disks[f[0]]
			if d == nil {
				d = &diskUse{Device: h.devices(f[0])}
				disks[f[0]] = d
			}
			switch file + " " + f[1] {
			case "io_service_bytes Read":
				d.ReadBytes = *parse(f[2])
			case "io_service_bytes Write":
				d.WriteBytes = *parse(f[2])
			case "io_serviced Read":
				d.Reads = *parse(f[2])
			case "io_serviced Write":
				d.Writes = *parse(f[2])
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(disks)) {
		u.Disks = append(u.Disks, *disks[number])
	}
}
