package stats

import (
	"context"
	"time"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Summary returns the usage of the node and its pods, with or without that of their files. What
// cannot be measured is left out.
func (c *Collector) Summary(ctx context.Context, files bool) (*statsapi.Summary, error) {
	s, err := c.look(ctx, true)
	if err != nil {
		return nil, err
	}
	d := &disks{}
	if files {
		if d, err = c.files(ctx); err != nil {
			return nil, err
		}
	}
	sum := &statsapi.Summary{Node: c.nodeStats(s, d, files), Pods: []statsapi.PodStats{}}
	for _, p := range s.Pods {
		sum.Pods = append(sum.Pods, podStats(p, d, files))
	}
	return sum, nil
}

func (c *Collector) nodeStats(s *sample, d *disks, all bool) statsapi.NodeStats {
	n := statsapi.NodeStats{NodeName: c.config.Node, StartTime: metav1.NewTime(c.config.Booted),
		CPU: cpuStats(s.Node), Memory: memoryStats(s.Node), Swap: swapStats(s.Node)}
	for _, k := range s.System {
		n.SystemContainers = append(n.SystemContainers, statsapi.ContainerStats{Name: k.Name, StartTime: n.StartTime,
			CPU: cpuStats(k.use), Memory: memoryStats(k.use), Swap: swapStats(k.use)})
	}
	if !all {
		return n
	}
	n.IO, n.Network = ioStats(s.Node), networkStats(s.Node.Time, s.Links, s.MainLink)
	n.Fs = fsStats(d.Node)
	if d.Images != nil {
		n.Runtime = &statsapi.RuntimeStats{ImageFs: fsStats(d.Images), ContainerFs: fsStats(d.Images)}
	}
	if now, most, err := c.config.Host.Tasks(); err == nil {
		n.Rlimit = &statsapi.RlimitStats{Time: metav1.NewTime(s.Node.Time), MaxPID: new(int64(most)), NumOfRunningProcesses: new(int64(now))}
	}
	return n
}

func podStats(p *podUse, d *disks, all bool) statsapi.PodStats {
	out := statsapi.PodStats{
		PodRef:     statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
		Containers: []statsapi.ContainerStats{},
		CPU:        cpuStats(p.Use), Memory: memoryStats(p.Use), Swap: swapStats(p.Use),
	}
	if p.Status.StartTime != nil {
		out.StartTime = *p.Status.StartTime
	}
	files := d.Pods[string(p.UID)]
	for _, k := range p.Containers {
		one := statsapi.ContainerStats{Name: k.Name, StartTime: metav1.NewTime(k.started()),
			CPU: cpuStats(k.Use), Memory: memoryStats(k.Use), Swap: swapStats(k.Use)}
		if all {
			one.IO = ioStats(k.Use)
			one.Rootfs, one.Logs = ofLayer(d.Images, d.Layers[k.ID]), ofLayer(d.Node, files.Logs[k.Name])
		}
		out.Containers = append(out.Containers, one)
	}
	if !all {
		return out
	}
	out.IO = ioStats(p.Use)
	if p.Use != nil {
		out.Network = networkStats(p.Use.Time, p.Links, mainOf(p.Links))
		out.ProcessStats = &statsapi.ProcessStats{ProcessCount: p.Use.Processes}
	}
	for _, v := range files.Volumes {
		out.VolumeStats = append(out.VolumeStats, statsapi.VolumeStats{FsStats: *fsStats(v.space), Name: v.Name})
	}
	out.EphemeralStorage = ephemeral(p, d, files)
	return out
}

// ephemeral returns the total usage of the node's disk by a pod: what its containers wrote, logs
// included, and its volumes that are not in memory.
func ephemeral(p *podUse, d *disks, files podDisks) *statsapi.FsStats {
	var l layer
	for _, k := range p.Containers {
		wrote, logs := d.Layers[k.ID], files.Logs[k.Name]
		l.Used = plus(l.Used, plus(wrote.Used, logs.Used))
		l.Inodes = plus(l.Inodes, plus(wrote.Inodes, logs.Inodes))
	}
	for _, v := range files.Volumes {
		if !v.InMemory {
			l.Used, l.Inodes = plus(l.Used, v.Used), plus(l.Inodes, v.InodesUsed)
		}
	}
	return ofLayer(d.Node, l)
}

// ofLayer returns the usage of a part of a file system.
func ofLayer(s *space, l layer) *statsapi.FsStats {
	if s == nil {
		if l.Used == nil {
			return nil
		}
		return &statsapi.FsStats{UsedBytes: l.Used, InodesUsed: l.Inodes}
	}
	out := fsStats(s)
	out.UsedBytes, out.InodesUsed = l.Used, l.Inodes
	return out
}

func fsStats(s *space) *statsapi.FsStats {
	if s == nil {
		return nil
	}
	return &statsapi.FsStats{Time: metav1.NewTime(s.Time), AvailableBytes: s.Available, CapacityBytes: s.Capacity, UsedBytes: s.Used,
		InodesFree: s.InodesFree, Inodes: s.Inodes, InodesUsed: s.InodesUsed}
}

func cpuStats(u *use) *statsapi.CPUStats {
	if u == nil || u.CPU == nil {
		return nil
	}
	return &statsapi.CPUStats{Time: metav1.NewTime(u.Time), UsageNanoCores: u.Nano, UsageCoreNanoSeconds: u.CPU, PSI: psi(u.CPUPressure)}
}

func memoryStats(u *use) *statsapi.MemoryStats {
	if u == nil || u.WorkingSet == nil {
		return nil
	}
	return &statsapi.MemoryStats{Time: metav1.NewTime(u.Time), AvailableBytes: less(u.MemoryLimit, u.WorkingSet), UsageBytes: u.Memory,
		WorkingSetBytes: u.WorkingSet, RSSBytes: u.RSS, PageFaults: u.Faults, MajorPageFaults: u.MajorFaults, PSI: psi(u.MemoryPressure)}
}

func ioStats(u *use) *statsapi.IOStats {
	if u == nil || u.IOPressure == nil {
		return nil
	}
	return &statsapi.IOStats{Time: metav1.NewTime(u.Time), PSI: psi(u.IOPressure)}
}

func swapStats(u *use) *statsapi.SwapStats {
	if u == nil || u.Swap == nil {
		return nil
	}
	return &statsapi.SwapStats{Time: metav1.NewTime(u.Time), SwapUsageBytes: u.Swap, SwapAvailableBytes: less(u.SwapLimit, u.Swap)}
}

func psi(p *cgroup2.PSIStats) *statsapi.PSIStats {
	if p == nil {
		return nil
	}
	return &statsapi.PSIStats{Full: psiData(p.GetFull()), Some: psiData(p.GetSome())}
}

func psiData(d *cgroup2.PSIData) statsapi.PSIData {
	return statsapi.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
}

// mainOf returns the name that runtimes give the interface of pods, if there is one, else the
// first.
func mainOf(links []link) string {
	for _, l := range links {
		if l.Name == "eth0" {
			return l.Name
		}
	}
	if len(links) > 0 {
		return links[0].Name
	}
	return ""
}

func networkStats(at time.Time, links []link, main string) *statsapi.NetworkStats {
	if len(links) == 0 {
		return nil
	}
	n := &statsapi.NetworkStats{Time: metav1.NewTime(at)}
	for _, l := range links {
		one := statsapi.InterfaceStats{Name: l.Name, RxBytes: known(l.RxBytes), RxErrors: known(l.RxErrs), TxBytes: known(l.TxBytes), TxErrors: known(l.TxErrs)}
		if l.Name == main {
			n.InterfaceStats = one
		}
		n.Interfaces = append(n.Interfaces, one)
	}
	return n
}
