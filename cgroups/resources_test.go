package cgroups

import (
	"fmt"
	"slices"
	"testing"
)

func TestSharesWeightAndQuota(t *testing.T) {
	for _, c := range []struct{ milli, shares, weight, quota int64 }{
		{0, 2, 1, 0}, {1, 2, 1, 1000}, {10, 10, 1, 1000}, {100, 102, 4, 10000}, {250, 256, 10, 25000}, {500, 512, 20, 50000},
		{1000, 1024, 39, 100000}, {1500, 1536, 59, 150000}, {2000, 2048, 79, 200000}, {4000, 4096, 157, 400000}, {1 << 20, 262144, 10000, 104857600},
	} {
		s, w, q := Shares(c.milli), Weight(Shares(c.milli)), Quota(c.milli, DefaultPeriod)
		if s != c.shares || w != c.weight || q != c.quota {
			t.Errorf("%dm: got %d shares, weight %d, quota %d; want %+v", c.milli, s, w, q, c)
		}
	}
}

func TestFiles(t *testing.T) {
	all := Resources{Shares: 102, Quota: 40000, Memory: 1 << 20, Pids: 7, CPUs: "0-1", HugePages: map[string]int64{"2MB": 0, "1GB": Unlimited}}
	for _, c := range []struct {
		name    string
		r       Resources
		unified bool
		want    []string
	}{
		{"nothing", Resources{}, true, nil},
		{"v1", all, false, []string{
			"cpu.shares=102", "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=40000", "memory.limit_in_bytes=1048576", "pids.max=7", "cpuset.cpus=0-1",
			"hugetlb.1GB.limit_in_bytes=4611686018427387904", "hugetlb.1GB.rsvd.limit_in_bytes=4611686018427387904",
			"hugetlb.2MB.limit_in_bytes=0", "hugetlb.2MB.rsvd.limit_in_bytes=0"}},
		{"v2", all, true, []string{
			"cpu.weight=4", "cpu.max=40000 100000", "memory.max=1048576", "pids.max=7", "cpuset.cpus=0-1",
			"hugetlb.1GB.max=4611686018427387904", "hugetlb.1GB.rsvd.max=4611686018427387904", "hugetlb.2MB.max=0", "hugetlb.2MB.rsvd.max=0"}},
		{"no limit of cpu, v1", Resources{Quota: -1, Period: 50000}, false, []string{"cpu.cfs_period_us=50000", "cpu.cfs_quota_us=-1"}},
		{"no limit of cpu, v2", Resources{Quota: -1, Period: 50000}, true, []string{"cpu.max=max 50000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range c.r.files(c.unified) {
				got = append(got, f.name+"="+f.value)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestPropertiesOfSlices(t *testing.T) {
	all := Resources{Shares: 102, Quota: 40000, Memory: 1 << 20, Pids: 7, CPUs: "0-2,9"}
	for _, c := range []struct {
		name    string
		r       Resources
		unified bool
		version int
		want    string
	}{
		{"v2", all, true, 252, `[MemoryMax=@t 1048576 CPUWeight=@t 4 CPUQuotaPeriodUSec=@t 100000 CPUQuotaPerSecUSec=@t 400000 TasksMax=@t 7 AllowedCPUs=@ay [0x7, 0x2]]`},
		{"v1", all, false, 252, `[MemoryLimit=@t 1048576 CPUShares=@t 102 CPUQuotaPeriodUSec=@t 100000 CPUQuotaPerSecUSec=@t 400000 TasksMax=@t 7]`},
		{"an old systemd", all, true, 241, `[MemoryMax=@t 1048576 CPUWeight=@t 4 CPUQuotaPerSecUSec=@t 400000 TasksMax=@t 7]`},
		{"no limit of cpu", Resources{Quota: -1}, true, 241, `[CPUQuotaPerSecUSec=@t 18446744073709551615]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range c.r.properties(c.unified, c.version) {
				got = append(got, p.Name+"="+p.Value.String())
			}
			if text := fmt.Sprint(got); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestWholePercent(t *testing.T) {
	for _, c := range []struct{ quota, period, want int64 }{
		{0, 100000, 0}, {-1, 100000, -1}, {1000, 100000, 1000}, {1001, 100000, 2000}, {40000, 100000, 40000}, {12345, 50000, 12500},
	} {
		if got := wholePercent(c.quota, c.period); got != c.want {
			t.Errorf("%d of %d: got %d, want %d", c.quota, c.period, got, c.want)
		}
	}
}

func TestSystemdVersion(t *testing.T) {
	for text, want := range map[string]int{`"252.39-1~deb12u1"`: 252, `"v245"`: 245, `"257"`: 257, `""`: 0} {
		if got := systemdVersion(text); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
