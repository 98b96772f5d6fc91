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

// killRounds is how often processes are killed before a cgroup counts as not
// to be emptied: between two looks they may have forked.
const killRounds = 5

// Within each round, processes get this long to be gone.
const (
	killWait = 400 * time.Millisecond
	killPoll = 2 * time.Millisecond
)

// Destroy kills the processes left in the cgroup of a pod, in all its places, and
// removes it. A missing cgroup is no error. Before SetUp it does nothing, and fails.
func (m *Manager) Destroy(ctx context.Context, uid string) error {
	if checkUID(uid) != nil {
		return nil // Create makes none for it
	}
	for _, c := range classes {
		path, err := m.pod(c, uid)
		if err != nil {
			return fmt.Errorf("remove cgroup of pod %s: %w", uid, err)
		}
		if !m.tree.there(path) {
			continue
		}
		if err := m.destroy(ctx, path); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
	}
	return nil
}

// destroy is for the cgroup of a pod alone: all others hold what is not ours.
func (m *Manager) destroy(ctx context.Context, path string) error {
	if !m.Names().isPod(path) {
		return fmt.Errorf("the processes in %q are not killed: it is no cgroup of a pod", path)
	}
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

// kill kills all processes in a cgroup and below. It returns those that live on.
func (t *tree) kill(ctx context.Context, path string) []int {
	pids := t.processes(path)
	for range killRounds {
		if !t.killAtOnce(path) {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone by itself
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

// killAtOnce lets the kernel kill a cgroup, so that no process forks away and those of
// other pid namespaces go too. It reports whether the kernel can: v2, since Linux 5.14.
func (t *tree) killAtOnce(path string) bool {
	if !t.unified || slices.Contains(t.members(path), os.Getpid()) {
		return false
	}
	return write(filepath.Join(t.all[0], path, "cgroup.kill"), "1") == nil
}

// processes returns those in a cgroup and below, in any hierarchy, but not the agent.
func (t *tree) processes(path string) []int {
	// 0 stands for one of another pid namespace, and for ourselves in kill(2)
	return slices.DeleteFunc(t.members(path), func(pid int) bool { return pid <= 0 || pid == os.Getpid() })
}

// members returns the ids in a cgroup and below, as this process sees them. The library
// gives up at a cgroup that goes meanwhile or is threaded and shows its ids further up.
func (t *tree) members(path string) []int {
	var pids []int
	for _, mount := range t.all {
		for _, dir := range walk(filepath.Join(mount, path)) {
			b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for line := range strings.Lines(string(b)) {
				if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}
