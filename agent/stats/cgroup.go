package stats

import (
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is the tree of cgroups, of either version.
type hierarchy struct {
	mount   string
	unified bool // version 2
	devices func(number string) string
}

// openHierarchy detects the version itself, as the library's Mode only checks /sys/fs/cgroup.
func openHierarchy(mount string, devices func(string) string) hierarchy {
	return hierarchy{mount, there(filepath.Join(mount, "cgroup.controllers")), devices}
}

func there(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// file returns the path of a controller's file of a cgroup.
func (h hierarchy) file(controller, path, name string) string {
	if h.unified {
		controller = ""
	}
	return filepath.Join(h.mount, controller, path, name)
}

// children returns the names of the cgroups directly below.
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

// processes returns the pids of a cgroup, without those below it. The library would list every file
// of the cgroup to find this one, which nearly doubles the cost of a sample.
func (h hierarchy) processes(path string) (pids []string) {
	for _, f := range lines(h.file("memory", path, "cgroup.procs")) {
		pids = append(pids, f...)
	}
	return pids
}

// processesIn returns the pids of a cgroup, or, if it has none, those up to so many levels below
// it.
func (h hierarchy) processesIn(at string, levels int) []string {
	pids := h.processes(at)
	if len(pids) > 0 || levels == 0 {
		return pids
	}
	for _, name := range h.children(at) {
		pids = append(pids, h.processesIn(path.Join(at, name), levels-1)...)
	}
	return pids
}

// read returns the usage of a cgroup, nil if it does not exist.
func (h hierarchy) read(path string) *use {
	u := h.readNumbers(path)
	if u != nil {
		u.Processes = known(uint64(len(h.processes(path))))
	}
	return u
}

// readNumbers is read without counting processes.
func (h hierarchy) readNumbers(path string) *use {
	if !there(h.file("memory", path, "")) {
		return nil
	}
	u := &use{}
	h.readCPU(path, u)
	if h.unified {
		h.readV2(path, u)
	} else {
		h.readV1(path, u)
	}
	return u
}

// workingSet returns the memory of a cgroup that is not easily freed, in bytes; nil: unknown. It
// reads two files. The library reads six for the same, too many for what the node measures every
// ten seconds and each pod in each minute.
func (h hierarchy) workingSet(path string) *uint64 {
	stat, err := ReadFile(h.file("memory", path, "memory.stat"))
	switch {
	case err != nil:
		return nil
	case !h.unified:
		return less(number(h.file("memory", path, "memory.usage_in_bytes")), valueOf(stat, "total_inactive_file"))
	}
	used := number(h.file("", path, "memory.current"))
	if anon, file := valueOf(stat, "anon"), valueOf(stat, "file"); used == nil && anon != nil && file != nil {
		used = known(*anon + *file) // of the root, which has no memory.current
	}
	return less(used, valueOf(stat, "inactive_file"))
}

// glance returns the cpu time of a cgroup in ns and its memory that is not easily freed in bytes;
// nil: unknown.
func (h hierarchy) glance(path string) (cpu, memory *uint64) {
	if !h.unified {
		return number(h.file("cpuacct", path, "cpuacct.usage")), h.workingSet(path)
	}
	stat, _ := ReadFile(h.file("", path, "cpu.stat"))
	cpu = valueOf(stat, "usage_usec")
	if cpu != nil {
		*cpu *= 1000
	}
	return cpu, h.workingSet(path)
}

// readCPU reads the cpu time of a cgroup.
func (h hierarchy) readCPU(path string, u *use) {
	u.Time, u.CPU, u.User, u.System = time.Now(), nil, nil, nil
	if h.unified {
		h.readCPUV2(path, u)
	} else {
		h.readCPUV1(path, u)
	}
}

// limit returns a limit, nil if there is none: version 1 then has the largest possible number, and
// the library returns 0 for a missing file.
func limit(n uint64) *uint64 {
	if n == 0 || n >= 1<<62 {
		return nil
	}
	return known(n)
}
