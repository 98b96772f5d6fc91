package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
)

// Host is where the kernel's files about the machine are mounted. The zero value is this machine.
type Host struct {
	Proc   string // default /proc
	Sys    string // default /sys
	Cgroup string // default /sys/fs/cgroup
}

func (h Host) complete() Host {
	for to, fallback := range map[*string]string{&h.Proc: "/proc", &h.Sys: "/sys", &h.Cgroup: "/sys/fs/cgroup"} {
		if *to == "" {
			*to = fallback
		}
	}
	return h
}

func (h Host) hierarchy() hierarchy { return openHierarchy(h.Cgroup, h.device) }

// Memory returns the memory of the machine in bytes, and how many of them are neither free nor
// easily freed, by the kubelet's rule.
func (h Host) Memory() (total, workingSet uint64, err error) {
	h = h.complete()
	m := h.meminfo()
	if m["MemTotal"] == nil {
		return 0, 0, fmt.Errorf("memory of the machine: %s has no MemTotal", filepath.Join(h.Proc, "meminfo"))
	}
	if used := h.hierarchy().workingSet("/"); used != nil {
		return *m["MemTotal"], *used, nil
	}
	used := less(m["MemTotal"], m["MemAvailable"])
	if used == nil {
		return 0, 0, errors.New("memory of the machine: the kernel does not tell how much is in use")
	}
	return *m["MemTotal"], *used, nil
}

// Tasks returns the present and the maximum number of processes and threads.
func (h Host) Tasks() (now, most uint64, err error) {
	h = h.complete()
	for _, name := range []string{"pid_max", "threads-max"} {
		if n := number(filepath.Join(h.Proc, "sys/kernel", name)); n != nil && (most == 0 || *n < most) {
			most = *n
		}
	}
	for _, f := range lines(filepath.Join(h.Proc, "loadavg")) {
		if len(f) >= 4 { // running/all
			_, all, _ := strings.Cut(f[3], "/")
			now, err = strconv.ParseUint(all, 10, 64)
		}
	}
	if err != nil || most == 0 || now == 0 {
		return 0, 0, errors.New("processes of the machine: the kernel does not tell how many there are and may be")
	}
	return now, most, nil
}

// meminfo returns bytes by name.
func (h Host) meminfo() map[string]*uint64 {
	out := map[string]*uint64{}
	for _, f := range lines(filepath.Join(h.Proc, "meminfo")) {
		if len(f) == 3 && f[2] == "kB" {
			if n := parse(f[1]); n != nil {
				out[strings.TrimSuffix(f[0], ":")] = known(*n << 10)
			}
		}
	}
	return out
}

// use returns the usage of the whole machine: from its root cgroup or, without that, from the
// kernel's other files.
func (h Host) use() *use {
	m := h.meminfo()
	u := h.hierarchy().read("/")
	if u == nil {
		u = &use{WorkingSet: less(m["MemTotal"], m["MemAvailable"]), Memory: less(m["MemTotal"], m["MemFree"])}
	}
	if u.CPU == nil {
		u.CPU, u.Time = h.cpuTime(), time.Now()
	}
	u.MemoryLimit, u.MaxThreads = m["MemTotal"], nil
	u.Swap, u.SwapLimit = less(m["SwapTotal"], m["SwapFree"]), m["SwapTotal"]
	for to, name := range map[**cgroup2.PSIStats]string{&u.CPUPressure: "cpu", &u.MemoryPressure: "memory", &u.IOPressure: "io"} {
		if *to == nil {
			*to = readPressure(filepath.Join(h.Proc, "pressure", name))
		}
	}
	return u
}

// perTick is the length of the ticks in which the kernel reports the machine's time to processes:
// USER_HZ is 100 on all Linux systems that run Go.
const perTick = 10_000_000 // ns

// cpuTime returns the busy time of the processors, in ns.
func (h Host) cpuTime() *uint64 {
	for _, f := range lines(filepath.Join(h.Proc, "stat")) {
		if len(f) < 8 || f[0] != "cpu" {
			continue
		}
		var ticks uint64
		for _, k := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq; not idle and iowait
			n, _ := strconv.ParseUint(f[k], 10, 64)
			ticks += n
		}
		return known(ticks * perTick)
	}
	return nil
}

// links returns the traffic of the interfaces in a process's network namespace, without the
// loopback. Process "self" is in the agent's.
func (h Host) links(process string) []link {
	var out []link
	for _, f := range lines(filepath.Join(h.Proc, process, "net/dev")) {
		if len(f) == 0 {
			continue
		}
		if name, rest, glued := strings.Cut(f[0], ":"); glued && rest != "" { // "eth0:123 ..."
			f = append([]string{name + ":", rest}, f[1:]...)
		}
		name, ok := strings.CutSuffix(f[0], ":")
		if !ok || name == "lo" || len(f) < 13 {
			continue
		}
		l := link{Name: name}
		for k, to := range map[int]*uint64{1: &l.RxBytes, 2: &l.RxPackets, 3: &l.RxErrs, 4: &l.RxDrop,
			9: &l.TxBytes, 10: &l.TxPackets, 11: &l.TxErrs, 12: &l.TxDrop} {
			*to, _ = strconv.ParseUint(f[k], 10, 64)
		}
		out = append(out, l)
	}
	return out
}

// ownLinks returns the interfaces of the machine, without its ends of the pods' interfaces.
func (h Host) ownLinks() []link {
	return slices.DeleteFunc(h.links("self"), func(l link) bool {
		return strings.HasPrefix(l.Name, "veth") || strings.HasPrefix(l.Name, "docker") || strings.HasPrefix(l.Name, "nerdctl")
	})
}

// mainLink returns the interface of the default route, eth0 if there is none.
func (h Host) mainLink() string {
	for _, f := range lines(filepath.Join(h.Proc, "net/route")) {
		if len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			return f[0]
		}
	}
	return "eth0"
}

// device returns the path of a block device such as 8:0, or that number if the path is not known.
func (h Host) device(number string) string {
	at, err := os.Readlink(filepath.Join(h.Sys, "dev/block", number))
	if err != nil {
		return number
	}
	return "/dev/" + filepath.Base(at)
}
