package print

import (
	"cmp"
	"strconv"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Numbers of top; an unknown one is "", which prints as a dash.

func zero(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func nano(c *statsapi.CPUStats) *uint64 {
	if c == nil {
		return nil
	}
	return c.UsageNanoCores
}

func workingSet(m *statsapi.MemoryStats) *uint64 {
	if m == nil {
		return nil
	}
	return m.WorkingSetBytes
}

func cores(c *statsapi.CPUStats) string { return Cores(nano(c)) }

// Cores returns the use of the processors, in billionths of a core, as kubectl top does: thousandths,
// such as 250m; "": not known.
func Cores(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint((*n+999_999)/1_000_000, 10) + "m"
}

func mebibytes(m *statsapi.MemoryStats) string { return Mebibytes(workingSet(m)) }

// Mebibytes returns the use of memory, in bytes, as kubectl top does, such as 12Mi; "": not known.
func Mebibytes(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n>>20, 10) + "Mi"
}

// share returns the share of n in all, such as 12%.
func share(n *uint64, all int64) string {
	if n == nil || all <= 0 {
		return ""
	}
	return strconv.FormatUint(*n*100/uint64(all), 10) + "%"
}

// used returns what something uses of a disk.
func used(f *statsapi.FsStats) string {
	if f == nil || f.UsedBytes == nil {
		return ""
	}
	return size(*f.UsedBytes)
}

// full returns how full a file system is, such as 12%.
func full(f *statsapi.FsStats) string {
	if f == nil || f.CapacityBytes == nil {
		return ""
	}
	return share(f.UsedBytes, int64(*f.CapacityBytes))
}

// traffic returns the traffic of a pod's main interface, in and out.
func traffic(n *statsapi.NetworkStats) []string {
	if n == nil || n.RxBytes == nil || n.TxBytes == nil {
		return []string{"", ""}
	}
	return []string{size(*n.RxBytes), size(*n.TxBytes)}
}

func processes(p *statsapi.ProcessStats) string {
	if p == nil || p.ProcessCount == nil {
		return ""
	}
	return strconv.FormatUint(*p.ProcessCount, 10)
}

// tasks returns the number of processes and threads on the machine.
func tasks(r *statsapi.RlimitStats) string {
	if r == nil || r.NumOfRunningProcesses == nil {
		return ""
	}
	return strconv.FormatInt(*r.NumOfRunningProcesses, 10)
}

// logsOf returns the size of the logs of all of a pod's containers.
func logsOf(p *statsapi.PodStats) string {
	var sum *uint64
	for i := range p.Containers {
		if l := p.Containers[i].Logs; l != nil && l.UsedBytes != nil {
			sum = new(*cmp.Or(sum, new(uint64)) + *l.UsedBytes)
		}
	}
	return used(&statsapi.FsStats{UsedBytes: sum})
}
