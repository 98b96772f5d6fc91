package cpus

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// System is the folder in which Linux describes the CPUs.
const System = "/sys/devices/system"

// Read reads the topology from such a folder: which CPUs are online, and of which core, socket,
// NUMA node and shared cache each is part.
func Read(system string) (*Machine, error) {
	r := reader(system)
	nodes := r.nodes()
	var all []CPU
	cores := map[[3]int]int{} // the lowest CPU, by NUMA node, socket and core_id
	for _, id := range r.online() {
		socket, isKnown := r.number("cpu/cpu%d/topology/physical_package_id", id)
		inSocket, hasCore := r.number("cpu/cpu%d/topology/core_id", id)
		if !isKnown || !hasCore {
			continue
		}
		c := CPU{ID: id, Socket: socket, NUMA: socket, Uncore: socket}
		if len(nodes) > 0 {
			node, has := nodes[id]
			if !has {
				continue
			}
			c.NUMA = node
		}
		place := [3]int{c.NUMA, socket, inSocket}
		if _, has := cores[place]; !has {
			cores[place] = id
		}
		c.Core = cores[place]
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no CPU is described in %s", filepath.Join(system, "cpu"))
	}
	r.findUncores(all)
	return NewMachine(all, 0), nil
}

// reader reads files below a folder.
type reader string

func (r reader) text(format string, parts ...any) (string, bool) {
	b, err := os.ReadFile(filepath.Join(string(r), fmt.Sprintf(format, parts...)))
	return strings.TrimSpace(string(b)), err == nil
}

func (r reader) number(format string, parts ...any) (int, bool) {
	text, _ := r.text(format, parts...)
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// numbered returns the numbers of the entries of a folder that are a prefix and a number.
func (r reader) numbered(dir, prefix string) Set {
	entries, _ := os.ReadDir(filepath.Join(string(r), dir))
	var all []int
	for _, e := range entries {
		rest, has := strings.CutPrefix(e.Name(), prefix)
		n, err := strconv.Atoi(rest)
		if has && err == nil {
			all = append(all, n)
		}
	}
	return NewSet(all...)
}

// online returns the CPUs that are online: all, if the kernel does not say which.
func (r reader) online() Set {
	all := r.numbered("cpu", "cpu")
	text, has := r.text("cpu/online")
	online, err := Parse(text)
	if !has || err != nil {
		return all
	}
	return all.And(online)
}

// nodes returns the NUMA nodes of the CPUs; none, if the kernel knows no NUMA.
func (r reader) nodes() map[int]int {
	of := map[int]int{}
	for _, node := range r.numbered("node", "node") {
		for _, id := range r.numbered(fmt.Sprintf("node/node%d", node), "cpu") {
			of[id] = node
		}
	}
	return of
}

// findUncores finds the shared caches: those above level 2 that are not the whole NUMA node's.
func (r reader) findUncores(all []CPU) {
	found := map[int]int{}
	for _, c := range all {
		if c.ID == c.Core {
			found[c.Core] = r.uncoreOf(c, all)
		}
	}
	if slices.ContainsFunc(all, func(c CPU) bool { return found[c.Core] < 0 }) {
		return
	}
	for i := range all {
		all[i].Uncore = found[all[i].Core]
	}
}

// uncoreOf returns the id of the core's shared cache; -1: it has none.
func (r reader) uncoreOf(c CPU, all []CPU) int {
	cores, threads := map[int]bool{}, 0
	for _, o := range all {
		if o.NUMA == c.NUMA {
			cores[o.Core] = true
		}
		if o.Core == c.Core {
			threads++
		}
	}
	for _, index := range r.numbered(fmt.Sprintf("cpu/cpu%d/cache", c.ID), "index") {
		level, _ := r.number("cpu/cpu%d/cache/index%d/level", c.ID, index)
		id, hasID := r.number("cpu/cpu%d/cache/index%d/id", c.ID, index)
		shared, _ := r.text("cpu/cpu%d/cache/index%d/shared_cpu_map", c.ID, index)
		if level > 2 && hasID && countBits(shared) != len(cores)*threads {
			return id
		}
	}
	return -1
}

// countBits returns how many CPUs are in a mask such as ff,00000001.
func countBits(mask string) int {
	count := 0
	for _, digit := range mask {
		n, _ := strconv.ParseUint(string(digit), 16, 8) // of a comma 0
		count += bits.OnesCount64(n)
	}
	return count
}
