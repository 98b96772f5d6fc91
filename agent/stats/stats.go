// Package stats measures what the machine, the pods and their containers use: cpu, memory, network
// and disk. It measures on request, and of each pod a point a minute when the agent wakes anyway. It
// reads the kernel's own files, and asks the runtime for what only the runtime knows. It answers in
// the formats of a kubelet: /stats/summary, /metrics/resource and /metrics/cadvisor.
package stats

import (
	"time"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
)

// use is the usage of one cgroup, or what the runtime reports of a container. A nil number is not
// known.
type use struct {
	Time time.Time // when it was read

	CPU, User, System                    *uint64 // ns
	Nano                                 *uint64 // billionths of a core, the present rate
	Periods, Throttled, ThrottledFor     *uint64 // ThrottledFor in ns
	Shares, Quota, Period                *uint64 // Quota and Period in µs
	Memory, WorkingSet, RSS, Cache       *uint64 // bytes
	Mapped, Swap, MemoryLimit, SwapLimit *uint64 // bytes
	MemoryPeak, MemoryFails, OOMKills    *uint64
	Faults, MajorFaults                  *uint64
	Processes, Threads, MaxThreads       *uint64
	Disks                                []diskUse
	CPUPressure, MemoryPressure          *cgroup2.PSIStats
	IOPressure                           *cgroup2.PSIStats
}

// diskUse is what was read from and written to a block device.
type diskUse struct {
	Device                               string // such as /dev/sda, or 8:0
	Reads, Writes, ReadBytes, WriteBytes uint64
}

// link is the traffic of a network interface.
type link struct {
	Name                               string
	RxBytes, RxPackets, RxErrs, RxDrop uint64
	TxBytes, TxPackets, TxErrs, TxDrop uint64
}

// space is the usage of a file system or of a part of it.
type space struct {
	Time                           time.Time
	Capacity, Available, Used      *uint64 // bytes
	Inodes, InodesFree, InodesUsed *uint64
}

func known(n uint64) *uint64 { return &n }

// plus adds two values; an unknown one counts as 0.
func plus(a, b *uint64) *uint64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return known(*a + *b)
}

// less returns a-b, 0 if that is negative, nil if one is not known.
func less(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	return known(*a - min(*a, *b))
}
