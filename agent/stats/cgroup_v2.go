package stats

import (
	"fmt"

	"github.com/containerd/cgroups/v3/cgroup2"
	v2 "github.com/containerd/cgroups/v3/cgroup2/stats"
)

// stat reads one part of a cgroup's numbers, nil if that fails: an unreadable file fails everything
// that the library reads with it.
func (h hierarchy) stat(path string, part cgroup2.StatMask) *v2.Metrics {
	g, err := cgroup2.Load(path, cgroup2.WithMountpoint(h.mount))
	if err != nil {
		return nil
	}
	m, _ := g.StatFiltered(part)
	return m
}

// has reports whether a cgroup has a file. Where it is missing the library returns zeros.
func (h hierarchy) has(path, name string) bool { return there(h.file("", path, name)) }

func (h hierarchy) readCPUV2(path string, u *use) {
	c := h.stat(path, cgroup2.StatCPU).GetCPU()
	if c == nil || !h.has(path, "cpu.stat") {
		return
	}
	u.CPU, u.User, u.System = known(c.UsageUsec*1000), known(c.UserUsec*1000), known(c.SystemUsec*1000)
	u.CPUPressure = c.PSI
	for _, f := range lines(h.file("", path, "cpu.max")) { // for which the library has no reader
		if len(f) == 2 {
			u.Quota, u.Period = parse(f[0]), parse(f[1])
		}
	}
	if u.Period != nil { // otherwise nothing is counted
		u.Periods, u.Throttled, u.ThrottledFor = known(c.NrPeriods), known(c.NrThrottled), known(c.ThrottledUsec*1000)
	}
}

func (h hierarchy) readV2(path string, u *use) {
	if weight := number(h.file("", path, "cpu.weight")); weight != nil && *weight > 0 {
		u.Shares = known(2 + (*weight-1)*262142/9999) // the kubelet's conversion back
	}
	h.readMemoryV2(path, u)
	if e := h.stat(path, cgroup2.StatMemoryEvents).GetMemoryEvents(); e != nil {
		u.MemoryFails, u.OOMKills = known(e.Max), known(e.OomKill)
	}
	if p := h.stat(path, cgroup2.StatPids).GetPids(); p != nil && p.Limit != 0 {
		u.Threads, u.MaxThreads = known(p.Current), limit(p.Limit)
	}
	io := h.stat(path, cgroup2.StatIO).GetIo()
	u.IOPressure = io.GetPSI()
	for _, d := range io.GetUsage() {
		u.Disks = append(u.Disks, diskUse{h.devices(fmt.Sprintf("%d:%d", d.Major, d.Minor)), d.Rios, d.Wios, d.Rbytes, d.Wbytes})
	}
}

// readMemoryV2 reads the memory of a cgroup, with those below it.
func (h hierarchy) readMemoryV2(path string, u *use) {
	m := h.stat(path, cgroup2.StatMemory).GetMemory()
	if m == nil || !h.has(path, "memory.stat") {
		return
	}
	u.setMemory(m)
	if !h.has(path, "memory.swap.max") {
		u.Swap, u.SwapLimit = nil, nil
	}
}

func (u *use) setMemory(m *v2.MemoryStat) {
	u.RSS, u.Cache, u.Mapped = known(m.Anon), known(m.File), known(m.FileMapped)
	u.Faults, u.MajorFaults = known(m.Pgfault), known(m.Pgmajfault)
	u.Memory = known(m.Usage)
	if m.Usage == 0 { // the root has no memory.current
		u.Memory = known(m.Anon + m.File)
	}
	u.WorkingSet = less(u.Memory, known(m.InactiveFile))
	u.MemoryLimit, u.MemoryPeak = limit(m.UsageLimit), limit(m.MaxUsage)
	u.Swap, u.SwapLimit = known(m.SwapUsage), limit(m.SwapLimit)
	if m.SwapLimit == 0 {
		u.SwapLimit = known(0) // swap is forbidden
	}
	u.MemoryPressure = m.PSI
}
