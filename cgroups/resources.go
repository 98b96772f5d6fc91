package cgroups

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// The kernel's limits of cpu.shares, and the kubelet's of a quota.
const (
	minShares = 2
	maxShares = 262144
	minQuota  = 1000 // microseconds
)

// DefaultPeriod is the period of a cpu quota, in microseconds.
const DefaultPeriod = 100000

// Unlimited is a limit of huge pages that is never reached, as the kubelet writes it.
const Unlimited = 1 << 62

// Shares converts thousandths of a core to cpu.shares.
func Shares(milli int64) int64 { return min(max(milli*1024/1000, minShares), maxShares) }

// Quota converts thousandths of a core to microseconds in each period; 0: no
// limit.
func Quota(milli, period int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(milli*period/1000, minQuota)
}

// Weight converts cpu.shares to cpu.weight, by the linear formula that the kubelet uses for the
// levels and for pods. Runtimes use a newer, curved one for containers, so the two differ on
// purpose.
func Weight(shares int64) int64 {
	return 1 + (min(max(shares, minShares), maxShares)-minShares)*9999/(maxShares-minShares)
}

// Resources are the values of one cgroup. Zero values are left unchanged.
type Resources struct {
	Shares    int64            // as cpu.shares of v1, also for v2
	Quota     int64            // microseconds of cpu in each Period; -1: no limit
	Period    int64            // microseconds; 0: DefaultPeriod
	Memory    int64            // bytes
	Pids      int64            // processes and threads
	HugePages map[string]int64 // bytes by page size, such as 2MB; zeros are written
	CPUs      string           // a list such as 0-3
}

// Larger returns the larger of each pair of values; a limit that only one of the two has is left
// out.
func (r Resources) Larger(o Resources) Resources {
	limit := func(a, b int64) int64 {
		if a <= 0 || b <= 0 {
			return 0
		}
		return max(a, b)
	}
	r.Shares = max(r.Shares, o.Shares)
	r.Quota, r.Memory = limit(r.Quota, o.Quota), limit(r.Memory, o.Memory)
	return r
}

func (r Resources) period() int64 {
	if r.Period == 0 {
		return DefaultPeriod
	}
	return r.Period
}

// file is one value to write.
type file struct {
	controller, name, value string
	optional                bool // the kernel may not have it
}

// files returns the values to write, in order.
func (r Resources) files(unified bool) []file {
	list := r.v1()
	if unified {
		list = r.v2()
	}
	if r.Pids != 0 {
		list = append(list, file{controller: "pids", name: "pids.max", value: number(r.Pids)})
	}
	if r.CPUs != "" {
		list = append(list, file{controller: "cpuset", name: "cpuset.cpus", value: r.CPUs})
	}
	for _, size := range slices.Sorted(maps.Keys(r.HugePages)) {
		limit := "max"
		if !unified {
			limit = "limit_in_bytes"
		}
		for _, kind := range []string{"", "rsvd."} {
			list = append(list, file{controller: "hugetlb", name: fmt.Sprintf("hugetlb.%s.%s%s", size, kind, limit), value: number(r.HugePages[size]), optional: kind != ""})
		}
	}
	return list
}

func (r Resources) v1() (list []file) {
	if r.Shares != 0 {
		list = append(list, file{controller: "cpu", name: "cpu.shares", value: number(r.Shares)})
	}
	if r.Quota != 0 {
		list = append(list, file{controller: "cpu", name: "cpu.cfs_period_us", value: number(r.period())},
			file{controller: "cpu", name: "cpu.cfs_quota_us", value: number(max(r.Quota, -1))})
	}
	if r.Memory != 0 {
		list = append(list, file{controller: "memory", name: "memory.limit_in_bytes", value: number(r.Memory)})
	}
	return list
}

func (r Resources) v2() (list []file) {
	if r.Shares != 0 {
		list = append(list, file{controller: "cpu", name: "cpu.weight", value: number(Weight(r.Shares))})
	}
	if r.Quota != 0 {
		quota := "max"
		if r.Quota > 0 {
			quota = number(r.Quota)
		}
		list = append(list, file{controller: "cpu", name: "cpu.max", value: quota + " " + number(r.period())})
	}
	if r.Memory != 0 {
		list = append(list, file{controller: "memory", name: "memory.max", value: number(r.Memory)})
	}
	return list
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
