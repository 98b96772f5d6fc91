package print

import (
	"strconv"

	"monopod/agent/status"
)

// The numbers of top; an unknown one is "", which prints as a dash.

func Zero(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func Nano(c *status.CPUStats) *uint64 {
	if c == nil {
		return nil
	}
	return c.UsageNanoCores
}

func WorkingSet(m *status.MemoryStats) *uint64 {
	if m == nil {
		return nil
	}
	return m.WorkingSetBytes
}

// Cores is use of the processors as kubectl top has it: thousandths, such as 250m.
func Cores(c *status.CPUStats) string {
	n := Nano(c)
	if n == nil {
		return ""
	}
	return strconv.FormatUint((*n+999_999)/1_000_000, 10) + "m"
}

// Mebibytes is use of memory as kubectl top has it, such as 12Mi.
func Mebibytes(m *status.MemoryStats) string {
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
func Used(f *status.FsStats) string {
	if f == nil || f.UsedBytes == nil {
		return ""
	}
	return Size(*f.UsedBytes)
}

// Full is how full a file system is, such as 12%.
func Full(f *status.FsStats) string {
	if f == nil || f.CapacityBytes == nil {
		return ""
	}
	return Share(f.UsedBytes, int64(*f.CapacityBytes))
}

// Traffic is what went over a pod's main interface, in and out.
func Traffic(n *status.NetworkStats) []string {
	if n == nil || n.RxBytes == nil || n.TxBytes == nil {
		return []string{"", ""}
	}
	return []string{Size(*n.RxBytes), Size(*n.TxBytes)}
}

func Processes(p *status.ProcessStats) string {
	if p == nil || p.ProcessCount == nil {
		return ""
	}
	return strconv.FormatUint(*p.ProcessCount, 10)
}

// Tasks is how many processes and threads there are on the machine.
func Tasks(r *status.RlimitStats) string {
	if r == nil || r.NumOfRunningProcesses == nil {
		return ""
	}
	return strconv.FormatInt(*r.NumOfRunningProcesses, 10)
}
