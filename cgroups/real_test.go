//go:build e2e

package cgroups_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"monopod/cgroups"
)

// TestReal makes cgroups on the machine that it runs on, with what it has.
func TestReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run this as root: it makes cgroups")
	}
	for _, driver := range []cgroups.Driver{cgroups.Cgroupfs, cgroups.Systemd} {
		t.Run(string(driver), func(t *testing.T) {
			if driver == cgroups.Systemd && !isThere("/run/systemd/private") {
				t.Skip("SKIPPED: there is no systemd on this machine")
			}
			root := fmt.Sprintf("monopodtest%d", os.Getpid())
			m := realManager(t, root, driver)
			realPod(t, m)
		})
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// realManager returns a manager on a root of its own, which goes with the test.
func realManager(t *testing.T, root string, driver cgroups.Driver) *cgroups.Manager {
	t.Helper()
	name := root
	if driver == cgroups.Systemd {
		name += ".slice"
	}
	mounts := []string{"/sys/fs/cgroup"}
	if !isThere("/sys/fs/cgroup/cgroup.controllers") {
		found, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
		mounts = nil
		for _, procs := range found {
			mounts = append(mounts, filepath.Dir(procs))
		}
	}
	t.Cleanup(func() {
		if driver == cgroups.Systemd {
			_ = exec.Command("systemctl", "stop", name).Run()
		}
		for _, mount := range mounts {
			top := filepath.Join(mount, name)
			for _, below := range []string{"kubepods/burstable", "kubepods/besteffort", "kubepods",
				root + "-kubepods.slice/" + root + "-kubepods-burstable.slice", root + "-kubepods.slice/" + root + "-kubepods-besteffort.slice", root + "-kubepods.slice", ""} {
				_ = syscall.Rmdir(filepath.Join(top, below))
			}
			if isThere(top) {
				t.Errorf("%s is left", top)
			}
		}
	})
	for _, mount := range mounts {
		for _, dir := range []string{root, name} { // the root is checked as it is named
			if err := os.MkdirAll(filepath.Join(mount, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if root != name {
			t.Cleanup(func() { _ = syscall.Rmdir(filepath.Join(mount, root)) })
		}
	}
	m, err := cgroups.Open(cgroups.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	node := machine
	node.HugePages = nil
	if err := m.SetUp(t.Context(), driver, node); err != nil {
		t.Fatal(err)
	}
	return m
}

// realPod makes a pod's cgroup, runs a program in it, and removes both.
func realPod(t *testing.T, m *cgroups.Manager) {
	const uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	values := cgroups.Resources{Shares: 102, Quota: 41000, Memory: 64 << 20, Pids: 50}
	if err := m.Create(t.Context(), cgroups.Burstable, uid, values); err != nil {
		t.Fatal(err)
	}
	if err := m.Create(t.Context(), cgroups.Burstable, uid, values); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := m.SetBurstable(t.Context(), 500); err != nil {
		t.Error(err)
	}
	path := m.Names().Pod(cgroups.Burstable, uid)
	rows := map[string]string{"cpu/PATH/cpu.shares": "102", "cpu/PATH/cpu.cfs_quota_us": "41000", "memory/PATH/memory.limit_in_bytes": "67108864",
		"pids/PATH/pids.max": "50", "cpu/PATH/../cpu.shares": "512"}
	procs := "memory/PATH/cgroup.procs"
	if m.Unified() {
		rows = map[string]string{"PATH/cpu.weight": "4", "PATH/cpu.max": "41000 100000", "PATH/memory.max": "67108864", "PATH/pids.max": "50", "PATH/../cpu.weight": "20"}
		procs = "PATH/cgroup.procs"
	}
	for file, want := range rows {
		b, err := os.ReadFile("/sys/fs/cgroup/" + strings.Replace(file, "PATH", path, 1))
		if got := strings.TrimSpace(string(b)); got != want {
			t.Errorf("%s is %q, want %q (%v)", file, got, want, err)
		}
	}
	if !m.Exists(cgroups.Burstable, uid) || !m.Pods()[uid] {
		t.Errorf("the cgroup is not seen: pods are %v", m.Pods())
	}

	program := exec.Command("sh", "-c", "read moved; trap '' TERM; sleep 3600 & sleep 3600 & wait")
	stdin, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	procs = "/sys/fs/cgroup/" + strings.Replace(procs, "PATH", path, 1)
	if err := os.WriteFile(procs, []byte(fmt.Sprint(program.Process.Pid)), 0); err != nil {
		t.Error(err)
	}
	_, err = fmt.Fprintln(stdin) // what it forks from now on is in the cgroup, too
	if err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(procs)
		if strings.Count(string(b), "\n") == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the program and those that it started are not in the cgroup, but %q", b)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	if err := m.Destroy(t.Context(), uid); err != nil {
		t.Error(err)
		_ = program.Process.Kill()
	}
	<-ended
	if m.Exists(cgroups.Burstable, uid) || len(m.Pods()) > 0 {
		t.Errorf("pods are left: %v", m.Pods())
	}
	if err := m.Destroy(t.Context(), uid); err != nil {
		t.Errorf("once more: %v", err)
	}
}
