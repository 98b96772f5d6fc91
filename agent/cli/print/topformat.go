package print

import (
	"cmp"
	"strconv"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The numbers of top; an unknown one is "", which prints as a dash.

func Zero(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func Nano(c *statsapi.CPUStats) *uint64 {
	if c == nil {
		return nil
	}
	return c.UsageNanoCores
}

func WorkingSet(m *statsapi.MemoryStats) *uint64 {
	if m == nil {
		return nil
	}
	return m.WorkingSetBytes
}

// Cores is use of the processors as kubectl top has it: thousandths, such as 250m.
func Cores(c *statsapi.CPUStats) string {
	n := Nano(c)
	if n == nil {
		return ""
	}
	return strconv.FormatUint((*n+999_999)/1_000_000, 10) + "m"
}

// Mebibytes is use of memory as kubectl top has it, such as 12Mi.
func Mebibytes(m *statsapi.MemoryStats) string {
	n := WorkingSet(m)
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n>>20, 10) + "Mi"
}

// Share is what n is of all, such as 12%.
func Share(n *uint64, all int64) string {
	if n == nil || all <= 0 {
		return ""
	}
	return strconv.FormatUint(*n*100/uint64(all), 10) + "%"
}

// Used is what something takes of a disk.
func Used(f *statsapi.FsStats) string {
	if f == nil || f.UsedBytes == nil {
		return ""
	}
	return Size(*f.UsedBytes)
}

// Logs is what the logs of all of a pod's containers take.
func Logs(p *statsapi.PodStats) string {
	var sum *uint64
	for i := range p.Containers {
		if l := p.Containers[i].Logs; l != nil && l.UsedBytes != nil {
			sum = new(*cmp.Or(sum, new(uint64)) + *l.UsedBytes)
		}
	}
	return Used(&statsapi.FsStats{UsedBytes: sum})
}

// Full is how full a file system is, such as 12%.
func Full(f *statsapi.FsStats) string {
	if f == nil || f.CapacityBytes == nil {
		return ""
	}
	return Share(f.UsedBytes, int64(*f.CapacityBytes))
}

// Traffic is what went over a pod's main interface, in and out.
func Traffic(n *statsapi.NetworkStats) []string {
	if n == nil || n.RxBytes == nil || n.TxBytes == nil {
		return []string{"", ""}
	}
	return []string{Size(*n.RxBytes), Size(*n.TxBytes)}
}

func Processes(p *statsapi.ProcessStats) string {
	if p == nil || p.ProcessCount == nil {
		return ""
	}
	return strconv.FormatUint(*p.ProcessCount, 10)
}

// Tasks is how many processes and threads there are on the machine.
func Tasks(r *statsapi.RlimitStats) string {
	if r == nil || r.NumOfRunningProcesses == nil {
		return ""
	}
	return strconv.FormatInt(*r.NumOfRunningProcesses, 10)
}
