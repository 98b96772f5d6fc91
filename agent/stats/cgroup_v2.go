package stats

import (
	"math"
	"time"
)

func (h hierarchy) readV2(path string, u *use) {
	file := func(name string) string { return h.file("", path, name) }
	u.Time = time.Now()
	readPairs(file("cpu.stat"), pair{"usage_usec", &u.CPU}, pair{"user_usec", &u.User}, pair{"system_usec", &u.System},
		pair{"nr_periods", &u.Periods}, pair{"nr_throttled", &u.Throttled}, pair{"throttled_usec", &u.ThrottledFor})
	u.CPU, u.User, u.System, u.ThrottledFor = times(u.CPU, 1000), times(u.User, 1000), times(u.System, 1000), times(u.ThrottledFor, 1000)
	if weight := number(file("cpu.weight")); weight != nil && *weight > 0 {
		u.Shares = known(2 + (*weight-1)*262142/9999) // as the kubelet reads it back
	}
	for _, f := range lines(file("cpu.max")) {
		if len(f) == 2 {
			u.Quota, u.Period = parse(f[0]), parse(f[1])
		}
	}

	var inactive *uint64
	readPairs(file("memory.stat"), pair{"anon", &u.RSS}, pair{"file", &u.Cache}, pair{"file_mapped", &u.Mapped}, pair{"pgfault", &u.Faults}, pair{"pgmajfault", &u.MajorFaults}, pair{"inactive_file", &inactive})
	if u.Memory = number(file("memory.current")); u.Memory == nil && u.RSS != nil {
		u.Memory = plus(u.RSS, u.Cache) // the root has no memory.current
	}
	u.WorkingSet = less(u.Memory, inactive)
	u.MemoryLimit = number(file("memory.max"))
	u.MemoryPeak = number(file("memory.peak"))
	u.Swap = number(file("memory.swap.current"))
	u.SwapLimit = number(file("memory.swap.max"))
	readPairs(file("memory.events"), pair{"max", &u.MemoryFails}, pair{"oom_kill", &u.OOMKills})
	if u.MemoryLimit != nil && *u.MemoryLimit >= math.MaxInt64 {
		u.MemoryLimit = nil
	}

	u.Disks = h.eachDevice(file("io.stat"), nil, func(d *diskUse, key string, n uint64) {
		switch key {
		case "rbytes":
			d.ReadBytes = n
		case "wbytes":
			d.WriteBytes = n
		case "rios":
			d.Reads = n
		case "wios":
			d.Writes = n
		}
	})
	u.CPUPressure = readPressure(file("cpu.pressure"))
	u.MemoryPressure = readPressure(file("memory.pressure"))
	u.IOPressure = readPressure(file("io.pressure"))
}
