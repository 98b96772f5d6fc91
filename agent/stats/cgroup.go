package stats

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hierarchy is the tree of cgroups, of either version.
type hierarchy struct {
	mount   string
	unified bool // version 2
	devices func(number string) string
}

func openHierarchy(mount string, devices func(string) string) hierarchy {
	_, err := os.Stat(filepath.Join(mount, "cgroup.controllers"))
	return hierarchy{mount, err == nil, devices}
}

// file returns where a controller has a file of a cgroup.
func (h hierarchy) file(controller, path, name string) string {
	if h.unified {
		controller = ""
	}
	return filepath.Join(h.mount, controller, path, name)
}

// children returns the names of the cgroups right below.
func (h hierarchy) children(path string) []string {
	entries, _ := os.ReadDir(h.file("memory", path, ""))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// processes returns the pids of a cgroup, those below it not included.
func (h hierarchy) processes(path string) []int {
	var pids []int
	for _, f := range lines(h.file("memory", path, "cgroup.procs")) {
		if len(f) == 1 {
			if pid, err := strconv.Atoi(f[0]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// read returns what a cgroup has used, nil if it is not there.
func (h hierarchy) read(path string) *use {
	u := h.readNumbers(path)
	if u != nil {
		u.Processes = known(uint64(len(h.processes(path))))
	}
	return u
}

// readNumbers is read without counting processes.
func (h hierarchy) readNumbers(path string) *use {
	if _, err := os.Stat(h.file("memory", path, "")); err != nil {
		return nil
	}
	u := &use{}
	if h.unified {
		h.readV2(path, u)
	} else {
		h.readV1(path, u)
		h.readCPU(path, u)
	}
	u.Threads = number(h.file("pids", path, "pids.current"))
	u.MaxThreads = number(h.file("pids", path, "pids.max"))
	return u
}

// readCPU takes the time that a cgroup had of the processors until now.
func (h hierarchy) readCPU(path string, u *use) {
	u.Time = time.Now()
	if !h.unified {
		u.CPU = number(h.file("cpuacct", path, "cpuacct.usage"))
		return
	}
	readPairs(h.file("", path, "cpu.stat"), pair{"usage_usec", &u.CPU})
	u.CPU = times(u.CPU, 1000)
}

// times returns a*n, nil if a is not known.
func times(a *uint64, n uint64) *uint64 {
	if a == nil {
		return nil
	}
	return known(*a * n)
}

// limit returns a limit, nil if it is none: version 1 tells the largest number
// that it can.
func limit(n *uint64) *uint64 {
	if n == nil || *n >= 1<<62 {
		return nil
	}
	return n
}

// eachDevice calls take for each line "major:minor key=number ..." or "major:minor
// key number", with the device's use so far.
func (h hierarchy) eachDevice(path string, disks []diskUse, take func(d *diskUse, key string, n uint64)) []diskUse {
	for _, f := range lines(path) {
		if len(f) < 2 || !strings.Contains(f[0], ":") {
			continue
		}
		device := h.devices(f[0])
		at := -1
		for i := range disks {
			if disks[i].Device == device {
				at = i
			}
		}
		if at < 0 {
			at, disks = len(disks), append(disks, diskUse{Device: device})
		}
		pairs := f[1:]
		if len(f) == 3 && !strings.Contains(f[1], "=") {
			pairs = []string{f[1] + "=" + f[2]}
		}
		for _, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				take(&disks[at], key, n)
			}
		}
	}
	return disks
}
