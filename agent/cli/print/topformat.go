package print

import (
	"strconv"

	"monopod/agent/status"
)

// The numbers of top; an unknown one is "", which prints as a dash.

func zero(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func nano(c *status.CPUStats) *uint64 {
	if c == nil {
		return nil
	}
	return c.UsageNanoCores
}

func workingSet(m *status.MemoryStats) *uint64 {
	if m == nil {
		return nil
	}
	return m.WorkingSetBytes
}

// cores is use of the processors as kubectl top has it: thousandths, such as 250m.
func cores(c *status.CPUStats) string {
	n := nano(c)
	if n == nil {
		return ""
	}
	return strconv.FormatUint((*n+999_999)/1_000_000, 10) + "m"
}

// mebibytes is use of memory as kubectl top has it, such as 12Mi.
func mebibytes(m *status.MemoryStats) string {
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
func used(f *status.FsStats) string {
	if f == nil || f.UsedBytes == nil {
		return ""
	}
	return size(*f.UsedBytes)
}

// full is how full a file system is, such as 12%.
func full(f *status.FsStats) string {
	if f == nil || f.CapacityBytes == nil {
		return ""
	}
	return share(f.UsedBytes, int64(*f.CapacityBytes))
}

// traffic is what went over a pod's main interface, in and out.
func traffic(n *status.NetworkStats) []string {
	if n == nil || n.RxBytes == nil || n.TxBytes == nil {
		return []string{"", ""}
	}
	return []string{size(*n.RxBytes), size(*n.TxBytes)}
}

func processes(p *status.ProcessStats) string {
	if p == nil || p.ProcessCount == nil {
		return ""
	}
	return strconv.FormatUint(*p.ProcessCount, 10)
}

// tasks is how many processes and threads there are on the machine.
func tasks(r *status.RlimitStats) string {
	if r == nil || r.NumOfRunningProcesses == nil {
		return ""
	}
	return strconv.FormatInt(*r.NumOfRunningProcesses, 10)
}
