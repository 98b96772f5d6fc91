package print

import (
	"cmp"
	"strconv"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The numbers of top; an unknown one is "", which prints as a dash.

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

// cores is use of the processors as kubectl top has it: thousandths, such as 250m.
func cores(c *statsapi.CPUStats) string {
	n := nano(c)
	if n == nil {
		return ""
	}
	return strconv.FormatUint((*n+999_999)/1_000_000, 10) + "m"
}

// mebibytes is use of memory as kubectl top has it, such as 12Mi.
func mebibytes(m *statsapi.MemoryStats) string {
	n := workingSet(m)
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n>>20, 10) + "Mi"
}

// share is what n is of all, such as 12%.
func share(n *uint64, all int64) string {
	if n == nil || all <= 0 {
		return ""
	}
	return strconv.FormatUint(*n*100/uint64(all), 10) + "%"
}

// used is what something takes of a disk.
func used(f *statsapi.FsStats) string {
	if f == nil || f.UsedBytes == nil {
		return ""
	}
	return size(*f.UsedBytes)
}

// full is how full a file system is, such as 12%.
func full(f *statsapi.FsStats) string {
	if f == nil || f.CapacityBytes == nil {
		return ""
	}
	return share(f.UsedBytes, int64(*f.CapacityBytes))
}

// traffic is what went over a pod's main interface, in and out.
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

// tasks is how many processes and threads there are on the machine.
func tasks(r *statsapi.RlimitStats) string {
	if r == nil || r.NumOfRunningProcesses == nil {
		return ""
	}
	return strconv.FormatInt(*r.NumOfRunningProcesses, 10)
}

// logsOf is what the logs of all of a pod's containers take.
func logsOf(p *statsapi.PodStats) string {
	var sum *uint64
	for i := range p.Containers {
		if l := p.Containers[i].Logs; l != nil && l.UsedBytes != nil {
			sum = new(*cmp.Or(sum, new(uint64)) + *l.UsedBytes)
		}
	}
	return used(&statsapi.FsStats{UsedBytes: sum})
}
