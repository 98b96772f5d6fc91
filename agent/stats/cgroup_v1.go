package stats

import (
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

// readV1 reads controller by controller: one that lacks a file fails alone.
func (h hierarchy) readV1(path string, u *use) {
	m := &v1.Metrics{CPU: &v1.CPUStat{Throttling: &v1.Throttle{}}}
	if cgroup1.NewCpu(h.mount).Stat(path, m) == nil {
		t := m.CPU.Throttling
		u.Periods, u.Throttled, u.ThrottledFor = known(t.Periods), known(t.ThrottledPeriods), known(t.ThrottledTime)
	}
	if cgroup1.NewPids(h.mount).Stat(path, m) == nil {
		u.Threads, u.MaxThreads = known(m.Pids.Current), limit(m.Pids.Limit)
	}
	// Of swap one file is wanted, and kernels may have none; newer ones lack those of kmem.
	if cgroup1.NewMemory(h.mount, cgroup1.IgnoreModules("memsw", "kmem", "kmem.tcp")).Stat(path, m) == nil {
		u.RSS, u.Cache, u.Mapped = known(m.Memory.TotalRSS), known(m.Memory.TotalCache), known(m.Memory.TotalMappedFile)
		u.Faults, u.MajorFaults = known(m.Memory.TotalPgFault), known(m.Memory.TotalPgMajFault)
		u.Memory, u.MemoryPeak, u.MemoryFails = known(m.Memory.Usage.Usage), known(m.Memory.Usage.Max), known(m.Memory.Usage.Failcnt)
		u.WorkingSet, u.MemoryLimit = less(u.Memory, known(m.Memory.TotalInactiveFile)), limit(m.Memory.Usage.Limit)
		u.OOMKills = known(m.MemoryOomControl.OomKill)
	}
	h.readRestV1(path, u)
}

// readRestV1 reads what the library leaves out.
func (h hierarchy) readRestV1(path string, u *use) {
	u.Shares = number(h.file("cpu", path, "cpu.shares"))
	u.Quota = number(h.file("cpu", path, "cpu.cfs_quota_us")) // -1 is no number
	u.Period = number(h.file("cpu", path, "cpu.cfs_period_us"))
	readPairs(h.file("memory", path, "memory.stat"), pair{"total_swap", &u.Swap})
	if n := number(h.file("memory", path, "memory.memsw.limit_in_bytes")); n != nil {
		u.SwapLimit = less(limit(*n), u.MemoryLimit)
	}
	h.readDisksV1(path, u)
}

// readDisksV1 reads what the kubelet does, that of all cgroups below included. The
// library reads a pod's own cgroup alone, in which nothing runs.
func (h hierarchy) readDisksV1(path string, u *use) {
	for _, counted := range []struct {
		file        string
		read, write func(*diskUse) *uint64
	}{
		{"blkio.throttle.io_service_bytes_recursive", func(d *diskUse) *uint64 { return &d.ReadBytes }, func(d *diskUse) *uint64 { return &d.WriteBytes }},
		{"blkio.throttle.io_serviced_recursive", func(d *diskUse) *uint64 { return &d.Reads }, func(d *diskUse) *uint64 { return &d.Writes }},
	} {
		for _, f := range lines(h.file("blkio", path, counted.file)) {
			if len(f) != 3 || f[1] != "Read" && f[1] != "Write" {
				continue
			}
			n, to := parse(f[2]), counted.read
			if f[1] == "Write" {
				to = counted.write
			}
			if n != nil {
				*to(u.disk(h.devices(f[0]))) = *n
			}
		}
	}
}

// disk returns the use of a device.
func (u *use) disk(device string) *diskUse {
	i := slices.IndexFunc(u.Disks, func(d diskUse) bool { return d.Device == device })
	if i < 0 {
		i, u.Disks = len(u.Disks), append(u.Disks, diskUse{Device: device})
	}
	return &u.Disks[i]
}
