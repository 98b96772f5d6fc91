package rig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// remains finds what belongs to the rig in dir and lies outside of it: processes,
// mounts, cgroups, sockets. dir is unique, so its path marks what is ours.
type remains struct {
	dir    string
	before map[string]bool // cgroups and shim sockets that were there before us
}

const (
	shimSockets = "/run/containerd/s" // containerd's own choice, not configurable
	shims       = "containerd-shim-runc-v2"
	conmons     = "conmon"  // CRI-O's shims
	runtimeDir  = "runtime" // of the rig's folder, all that the runtime keeps
)

// runtimes and workers are the programs that run pods: those that live without any, and
// those that end with their pod.
var (
	runtimes = []string{"containerd", "crio"}
	workers  = []string{shims, conmons, "runc", "crun"}
)

// processes returns ours among the programs named.
func (r remains) processes(programs ...string) []int {
	var pids []int
	for _, pid := range allPids() {
		cmdline, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		program, args, _ := bytes.Cut(cmdline, []byte{0})
		if slices.Contains(programs, filepath.Base(string(program))) && bytes.Contains(args, []byte(r.dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inContainers returns the processes that run in the containers with these ids.
func (r remains) inContainers(ids []string) []int {
	var pids []int
	for _, pid := range allPids() {
		cgroup, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		if slices.ContainsFunc(ids, func(id string) bool { return bytes.Contains(cgroup, []byte(id)) }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func allPids() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// bundles are the folders of sandboxes and containers in the runtime's state; their
// base names are the ids.
func (r remains) bundles() []string {
	found := r.kept("state/io.containerd.runtime.v2.task/k8s.io/*", "root/io.containerd.runtime.v2.task/k8s.io/*", "oci/[^.]*") // crun keeps hidden files there
	for _, data := range r.kept("root/overlay-containers/*/userdata", "state/overlay-containers/*/userdata") {
		found = append(found, filepath.Dir(data))
	}
	return found
}

// records are what else the runtime keeps per pod: first containerd, then CRI-O.
func (r remains) records() []string {
	const cri = "/io.containerd.grpc.v1.cri/"
	return r.kept("root"+cri+"sandboxes/*", "root"+cri+"containers/*", "state"+cri+"sandboxes/*", "state"+cri+"containers/*",
		"state"+cri+"netns/*", "state/netns/*", "runc/k8s.io/*", crunRoot+"/k8s.io/[^.]*",
		"exits/*", "ns/*ns/*")
}

// kept finds files of the runtime's folder.
func (r remains) kept(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		found = append(found, globs(filepath.Join(r.dir, runtimeDir, p))...)
	}
	return found
}

func globs(patterns ...string) []string {
	var found []string
	for _, p := range patterns {
		f, _ := filepath.Glob(p)
		found = append(found, f...)
	}
	return found
}

// mounts returns the mount points under the rig's folder, innermost first.
func (r remains) mounts() []string { return mountsUnder(r.dir) }

// storage is where CRI-O mounts its images' folder on itself, as long as it runs and
// without any pod.
func (r remains) storage() string { return filepath.Join(r.dir, runtimeDir, "root/overlay") }

func mountsUnder(dir string) []string {
	var under []string
	for _, m := range mountinfo() {
		if strings.HasPrefix(m.point, dir+"/") {
			under = append(under, m.point)
		}
	}
	slices.Reverse(under)
	return under
}

type mount struct{ point, fstype string }

// mountinfo reads proc_pid_mountinfo(5) in the order of mounting.
func mountinfo() []mount {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []mount
	for s := bufio.NewScanner(f); s.Scan(); {
		left, right, ok := strings.Cut(s.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if ok && len(l) > 4 && len(r) > 0 {
			all = append(all, mount{l[4], r[0]})
		}
	}
	return all
}

// cgroupRoots is what the names of the rigs' cgroups begin with. Each agent keeps
// its pods in one of its own, apart from those of other agents and of the machine.
const cgroupRoots = "monopod-"

// cgroupRoot is that of the agent with this folder, as a path in the hierarchies.
func (r remains) cgroupRoot(agent string) string {
	return r.cgroupPrefix() + strings.TrimPrefix(filepath.Base(agent), agentDirs)
}

// cgroupPrefix is what the names of this rig's cgroups begin with.
func (r remains) cgroupPrefix() string { return "/" + filepath.Base(r.dir) + "-" }

// makeCgroup makes a cgroup in every hierarchy that agents use.
func makeCgroup(path string) error {
	for _, mount := range hierarchies() {
		err := os.Mkdir(mount+path, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a cgroup for the agent: %w", err)
		}
	}
	return nil
}

// LimitedCgroup makes a cgroup whose processes may have so many bytes of memory, and returns its
// path in the hierarchies.
func (r *Rig) LimitedCgroup(name string, bytes int64) (string, error) {
	path := r.remains.cgroupPrefix() + name
	if err := makeCgroup(path); err != nil {
		return "", err
	}
	for _, mount := range hierarchies() {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			if err := os.WriteFile(mount+path+"/"+file, []byte(strconv.FormatInt(bytes, 10)), 0); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("limit the memory of cgroup %s: no hierarchy has that limit", path)
}

// hierarchies returns where cgroups are mounted.
func hierarchies() []string {
	var found []string
	for _, m := range mountinfo() {
		if m.fstype == "cgroup" || m.fstype == "cgroup2" {
			found = append(found, m.point)
		}
	}
	return found
}

// podCgroups returns all cgroup folders, in every hierarchy, under the roots that
// kubelet, monopod and runtimes make for pods; parents come first.
func podCgroups() []string {
	var found []string
	for _, mount := range hierarchies() {
		for _, top := range globs(mount+"/kubepods*", mount+"/k8s.io", mount+"/crio", mount+"/"+cgroupRoots+"*") {
			found = append(found, cgroupsIn(top)...)
		}
	}
	return found
}

// cgroupsIn returns a cgroup's folder and those below it; parents come first.
func cgroupsIn(top string) []string {
	var found []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// newCgroups returns the pods' cgroups that came since the rig was opened and hold
// no process, nor does one below. Those with processes may be another runtime's; a
// process of ours is found by other means.
func (r remains) newCgroups() []string {
	all, populated := podCgroups(), map[string]bool{}
	for _, path := range all {
		if procs, _ := os.ReadFile(path + "/cgroup.procs"); len(procs) == 0 {
			continue
		}
		for p := path; !populated[p] && p != "/"; p = filepath.Dir(p) {
			populated[p] = true
		}
	}
	return slices.DeleteFunc(all, func(path string) bool { return r.before[path] || populated[path] })
}

// scaffold says whether a cgroup is a level that holds pods, which agents make once
// and keep.
func scaffold(path string) bool {
	switch filepath.Base(path) {
	case "k8s.io", "crio", "kubepods", "besteffort", "burstable",
		"kubepods.slice", "kubepods-besteffort.slice", "kubepods-burstable.slice":
		return true
	}
	return strings.HasPrefix(filepath.Base(path), cgroupRoots)
}

// deadSockets are shims' sockets that came since the rig was opened and that
// no process listens to.
func (r remains) deadSockets() []string {
	return slices.DeleteFunc(globs(shimSockets+"/*"), func(path string) bool {
		if r.before[path] {
			return true
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

func kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
