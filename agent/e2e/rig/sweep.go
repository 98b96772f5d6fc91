package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// leaks lists what is there although all pods were removed.
func (r remains) leaks() []string {
	var found []string
	for _, pid := range r.processes(append([]string{"monopod"}, workers...)...) {
		found = append(found, fmt.Sprintf("process %d %s", pid, commandLine(pid)))
	}
	for _, path := range slices.Concat(r.bundles(), r.records()) {
		found = append(found, "left by a pod in the runtime: "+path)
	}
	for _, path := range r.mounts() {
		if path != r.storage() {
			found = append(found, "mount "+path)
		}
	}
	for _, path := range r.newCgroups() {
		if !scaffold(path) {
			found = append(found, "cgroup "+path)
		}
	}
	for _, path := range r.deadSockets() {
		found = append(found, "socket "+path)
	}
	return found
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
}

// sweep kills and removes everything of the rig, in whatever state it is, and
// the folder itself. It may run when nothing is left.
func (r remains) sweep() {
	agents := append([]string{"monopod"}, runtimes...)
	kill(r.processes(agents...))
	var ids []string
	for _, b := range r.bundles() {
		ids = append(ids, filepath.Base(b))
	}
	kill(r.processes(workers...))
	kill(r.inContainers(ids))
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(Poll) {
		if len(r.inContainers(ids))+len(r.processes(append(agents, workers...)...)) == 0 {
			break
		}
	}
	for _, m := range r.mounts() {
		_ = syscall.Unmount(m, syscall.MNT_DETACH)
	}
	r.removeCgroups(ids)
	for _, s := range r.deadSockets() {
		_ = os.Remove(s)
	}
	_ = os.Remove(shimSockets) // only when empty
	_ = os.Remove(filepath.Dir(shimSockets))
	_ = os.RemoveAll(r.dir)
}

// Sweep ends the agent with its commands, and removes its mounts and cgroups with
// what still runs there: for one whose story went wrong, so that the next one
// finds nothing of it. The runtime must have no pods of it any more.
func (a *Agent) Sweep() error {
	if a.Running() {
		a.Kill()
	}
	kill(remains{dir: a.Dir}.processes("monopod"))
	for _, m := range mountsUnder(a.Dir) {
		if err := syscall.Unmount(m, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("sweep: unmount %s: %w", m, err)
		}
	}
	return Until(context.Background(), 5*time.Second, a.removeCgroups)
}

// removeCgroups kills what runs in the agent's cgroups and removes them.
func (a *Agent) removeCgroups() (err error) {
	if a.cgroups == "" {
		return nil
	}
	for _, mount := range hierarchies() {
		for _, path := range slices.Backward(cgroupsIn(mount + a.cgroups)) {
			procs, _ := os.ReadFile(path + "/cgroup.procs")
			for pid := range strings.FieldsSeq(string(procs)) {
				n, _ := strconv.Atoi(pid)
				kill([]int{n})
			}
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// removeCgroups removes those of the containers with these ids and the levels that
// came with them. A cgroup that holds processes or others' cgroups stays: rmdir refuses.
func (r remains) removeCgroups(ids []string) {
	for _, path := range slices.Backward(r.newCgroups()) {
		if scaffold(path) || strings.Contains(path, r.cgroupPrefix()) || slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(path, id) }) {
			_ = syscall.Rmdir(path)
			if parent := filepath.Dir(path); strings.HasPrefix(filepath.Base(parent), "pod") {
				_ = syscall.Rmdir(parent)
			}
		}
	}
}

// remember notes what is there before the rig does anything, in a file that the
// janitor reads.
func (r *remains) remember() error {
	all := slices.Concat(podCgroups(), globs(shimSockets+"/*"))
	if err := os.WriteFile(filepath.Join(r.dir, "before"), []byte(strings.Join(all, "\n")), 0o644); err != nil {
		return err
	}
	return r.recall()
}

func (r *remains) recall() error {
	b, err := os.ReadFile(filepath.Join(r.dir, "before"))
	r.before = map[string]bool{}
	for line := range strings.Lines(string(b)) {
		r.before[strings.TrimSpace(line)] = true
	}
	return err
}
