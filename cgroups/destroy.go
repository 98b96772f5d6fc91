package cgroups

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killRounds is how often Destroy kills the processes of a cgroup before it gives up: between two
// rounds they may have forked.
const killRounds = 5

// In each round, Destroy waits this long for the processes to end.
const (
	killWait = 400 * time.Millisecond
	killPoll = 2 * time.Millisecond
)

// Destroy kills the processes in the cgroup of a pod, in all hierarchies, and removes it. A missing
// cgroup is not an error. Before SetUp it does nothing and returns an error.
func (m *Manager) Destroy(ctx context.Context, uid string) error {
	return m.each(uid, func(path string) error {
		if err := m.destroy(ctx, path); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
		return nil
	})
}

// Kill kills the processes in the cgroup of a pod, in all hierarchies, and keeps the cgroup. A
// missing cgroup is not an error. Before SetUp it does nothing and returns an error.
func (m *Manager) Kill(ctx context.Context, uid string) error {
	return m.each(uid, func(path string) error {
		if left := m.tree.kill(ctx, path); len(left) > 0 {
			return fmt.Errorf("kill cgroup %s: processes %v cannot be killed", path, left)
		}
		return nil
	})
}

// each calls do for each cgroup that a pod has: one, or more if its class of service has changed.
func (m *Manager) each(uid string, do func(path string) error) error {
	if checkUID(uid) != nil {
		return nil // Create makes none for it
	}
	for _, c := range classes {
		path, err := m.pod(c, uid)
		if err != nil {
			return fmt.Errorf("find cgroup of pod %s: %w", uid, err)
		}
		if !m.Names().isPod(path) {
			return fmt.Errorf("the processes in %q are not killed: it is no cgroup of a pod", path)
		}
		if !m.tree.there(path) {
			continue
		}
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}

// destroy must be called for cgroups of pods only: all others may hold processes of other programs.
func (m *Manager) destroy(ctx context.Context, path string) error {
	if left := m.tree.kill(ctx, path); len(left) > 0 {
		return fmt.Errorf("processes %v cannot be killed", left)
	}
	if units := m.systemd(); units != nil {
		if err := units.stop(ctx, path); err != nil {
			return err
		}
	}
	return m.tree.remove(path)
}

// kill kills all processes in a cgroup and below. It returns those that survive.
func (t *tree) kill(ctx context.Context, path string) []int {
	pids := t.processes(path)
	for range killRounds {
		if !t.killAtOnce(path) {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
			}
		}
		for end := time.Now().Add(killWait); len(pids) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
			time.Sleep(killPoll)
			pids = t.processes(path)
		}
		if len(pids) == 0 {
			return nil
		}
	}
	return pids
}

// killAtOnce has the kernel kill a cgroup, so that no process escapes by a fork and those of other
// pid namespaces are killed, too. It reports whether the kernel can: with v2, since Linux 5.14.
func (t *tree) killAtOnce(path string) bool {
	if !t.unified || slices.Contains(t.members(path), os.Getpid()) {
		return false
	}
	return write(filepath.Join(t.all[0], path, "cgroup.kill"), "1") == nil
}

// processes returns the processes in a cgroup and below, in any hierarchy, except the agent.
func (t *tree) processes(path string) []int {
	// 0 is a process of another pid namespace; in kill(2) it is the agent's own process group.
	return slices.DeleteFunc(t.members(path), func(pid int) bool { return pid <= 0 || pid == os.Getpid() })
}

// members returns the process ids in a cgroup and below, in this process's namespace. The library
// fails at a cgroup that is removed meanwhile, or that is threaded: its ids are listed in the
// cgroup above.
func (t *tree) members(path string) []int {
	var pids []int
	for _, mount := range t.all {
		for _, dir := range walk(dirOf(mount, path)) {
			ids, _ := read(filepath.Join(dir, "cgroup.procs"))
			for line := range strings.Lines(ids) {
				if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}
