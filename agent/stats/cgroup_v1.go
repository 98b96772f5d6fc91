package stats

// perTick is how long a tick is in which version 1 counts user and system time:
// USER_HZ is 100 on all systems that run Go on Linux.
const perTick = 10_000_000 // ns

func (h hierarchy) readV1(path string, u *use) {
	readPairs(h.file("cpuacct", path, "cpuacct.stat"), pair{"user", &u.User}, pair{"system", &u.System})
	u.User, u.System = times(u.User, perTick), times(u.System, perTick)
	readPairs(h.file("cpu", path, "cpu.stat"), pair{"nr_periods", &u.Periods}, pair{"nr_throttled", &u.Throttled}, pair{"throttled_time", &u.ThrottledFor})
	u.Shares = number(h.file("cpu", path, "cpu.shares"))
	u.Quota = number(h.file("cpu", path, "cpu.cfs_quota_us")) // -1 is no number
	u.Period = number(h.file("cpu", path, "cpu.cfs_period_us"))

	var inactive *uint64
	readPairs(h.file("memory", path, "memory.stat"), pair{"total_rss", &u.RSS}, pair{"total_cache", &u.Cache}, pair{"total_mapped_file", &u.Mapped}, pair{"total_swap", &u.Swap},
		pair{"total_pgfault", &u.Faults}, pair{"total_pgmajfault", &u.MajorFaults}, pair{"total_inactive_file", &inactive})
	u.Memory = number(h.file("memory", path, "memory.usage_in_bytes"))
	u.WorkingSet = less(u.Memory, inactive)
	u.MemoryLimit = limit(number(h.file("memory", path, "memory.limit_in_bytes")))
	u.SwapLimit = less(limit(number(h.file("memory", path, "memory.memsw.limit_in_bytes"))), u.MemoryLimit)
	u.MemoryPeak = number(h.file("memory", path, "memory.max_usage_in_bytes"))
	u.MemoryFails = number(h.file("memory", path, "memory.failcnt"))
	readPairs(h.file("memory", path, "memory.oom_control"), pair{"oom_kill", &u.OOMKills})

	u.Disks = h.eachDevice(h.file("blkio", path, "blkio.throttle.io_service_bytes_recursive"), nil, func(d *diskUse, key string, n uint64) {
		switch key {
		case "Read":
			d.ReadBytes = n
		case "Write":
			d.WriteBytes = n
		}
	})
	u.Disks = h.eachDevice(h.file("blkio", path, "blkio.throttle.io_serviced_recursive"), u.Disks, func(d *diskUse, key string, n uint64) {
		switch key {
		case "Read":
			d.Reads = n
		case "Write":
			d.Writes = n
		}
	})
}
