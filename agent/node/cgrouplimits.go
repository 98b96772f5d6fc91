package node

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"monopod/cgroups"
)

// capacity returns the total resources of the machine.
func (m *Node) capacity() cgroups.Node {
	n := cgroups.Node{CPU: int64(runtime.NumCPU()) * 1000, Memory: m.Base.Memory, HugePages: m.Base.HugePageSizes}
	if online, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
		n.CPUs = strings.TrimSpace(string(online))
		if count := countCPUs(n.CPUs); count > 0 {
			n.CPU = count * 1000
		}
	}
	for _, name := range []string{"pid_max", "threads-max"} {
		b, err := os.ReadFile("/proc/sys/kernel/" + name)
		most, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && most > 0 && (n.Pids == 0 || most < n.Pids) {
			n.Pids = most
		}
	}
	return n
}

// countCPUs counts the CPUs of a list such as 0-2,8; 0 if it is not a list.
func countCPUs(list string) (count int64) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || b < a {
			return 0
		}
		count += b - a + 1
	}
	return count
}
