// Package cgrouptest simulates the kernel's cgroups in a folder: files are created and removed with
// their cgroup. It has no limits and no processes; Use sets the usage.
package cgrouptest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"monopod/cgroups"
)

// Controllers of the simulated machine.
const (
	v2Controllers = "cpuset cpu io memory hugetlb pids rdma misc"
	v2Files       = "cgroup.procs cgroup.subtree_control cpuset.cpus cpu.weight cpu.max memory.max memory.current memory.stat hugetlb.2MB.max hugetlb.2MB.rsvd.max pids.max"
)

// v1Files are the files of each v1 hierarchy. Runtimes use devices, cgroups of pods do not.
var v1Files = map[string]string{
	"cpu": "cpu.shares cpu.cfs_period_us cpu.cfs_quota_us", "cpuacct": "", "cpuset": "cpuset.cpus cpuset.mems",
	"memory": "memory.limit_in_bytes memory.usage_in_bytes memory.stat", "hugetlb": "hugetlb.2MB.limit_in_bytes", "pids": "pids.max", "systemd": "", "devices": "",
}

// V1 returns a machine with v1, and a root cgroup with two cpus and one memory node.
func V1(t testing.TB) cgroups.Config {
	mount := t.TempDir()
	for controller := range v1Files {
		dir := filepath.Join(mount, controller)
		must(t, mkdirV1(mount, dir))
		if controller == "cpuset" {
			must(t, os.WriteFile(dir+"/cpuset.cpus", []byte("0-1\n"), 0o644))
			must(t, os.WriteFile(dir+"/cpuset.mems", []byte("0\n"), 0o644))
		}
	}
	return cgroups.Config{Mount: mount, Rmdir: rmdir, Mkdir: func(dir string) error { return mkdirV1(mount, dir) }}
}

func mkdirV1(mount, dir string) error {
	rel, err := filepath.Rel(mount, dir)
	if err != nil {
		return err
	}
	controller, _, _ := strings.Cut(rel, "/")
	return mkdir(dir, "cgroup.procs "+v1Files[controller])
}

// V2 returns a machine with v2 in which only the root delegates controllers.
func V2(t testing.TB) cgroups.Config {
	mount := t.TempDir()
	must(t, os.WriteFile(mount+"/cgroup.controllers", []byte(v2Controllers+"\n"), 0o644))
	must(t, os.WriteFile(mount+"/cgroup.subtree_control", nil, 0o644))
	return cgroups.Config{Mount: mount, Rmdir: rmdir, Mkdir: mkdirV2}
}

// V2Container returns what a container with a cgroup namespace of its own has with v2: its processes
// are in the topmost cgroup, which delegates no controllers as long as they are.
func V2Container(t testing.TB, pids ...string) cgroups.Config {
	cfg := V2(t)
	must(t, os.WriteFile(cfg.Mount+"/cgroup.procs", []byte(strings.Join(pids, "\n")), 0o644))
	cfg.IsContainers = func(dir string) bool { return dir == cfg.Mount }
	cfg.Write = func(file, value string) error { return writeV2(cfg.Mount, file, value) }
	return cfg
}

// writeV2 writes to a file of a cgroup that is not the machine's root: controllers are delegated by
// one without processes alone, and a process that is written to one leaves the topmost.
func writeV2(mount, file, value string) error {
	procs := filepath.Join(filepath.Dir(file), "cgroup.procs")
	inside, err := os.ReadFile(procs)
	if err != nil {
		return err
	}
	switch filepath.Base(file) {
	case "cgroup.subtree_control":
		if len(inside) > 0 {
			return &fs.PathError{Op: "write", Path: file, Err: syscall.EBUSY}
		}
	case "cgroup.procs":
		top := filepath.Join(mount, "cgroup.procs")
		all, err := os.ReadFile(top)
		if err != nil {
			return err
		}
		rest := slices.DeleteFunc(strings.Fields(string(all)), func(pid string) bool { return pid == value })
		if err := os.WriteFile(top, []byte(strings.Join(rest, "\n")), 0o644); err != nil {
			return err
		}
		value = strings.TrimSpace(string(inside) + "\n" + value)
	}
	return os.WriteFile(file, []byte(value), 0o644)
}

// mkdirV2 creates a cgroup with the controllers that its parent delegates.
func mkdirV2(dir string) error {
	if err := mkdir(dir, v2Files); err != nil {
		return err
	}
	handed, _ := os.ReadFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"))
	return os.WriteFile(filepath.Join(dir, "cgroup.controllers"), bytes.ReplaceAll(handed, []byte("+"), nil), 0o644)
}

func mkdir(dir, files string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name := range strings.FieldsSeq(files) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(values[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// values are the initial contents of files of a new cgroup.
var values = map[string]string{
	"memory.current": "0\n", "memory.usage_in_bytes": "0\n", "memory.stat": "anon 0\nfile 0\ninactive_file 0\ntotal_inactive_file 0\n",
}

// Use sets the memory usage of a cgroup: all bytes, and how many of these are cached files that the
// kernel can drop.
func Use(t testing.TB, cfg cgroups.Config, path string, all, reclaimable int64) {
	t.Helper()
	usage, dir, own := "memory.current", filepath.Join(cfg.Mount, path), reclaimable
	if _, err := os.Stat(dir); err != nil { // v1, which has lines for the totals with nested cgroups
		usage, dir, own = "memory.usage_in_bytes", filepath.Join(cfg.Mount, "memory", path), 0
	}
	must(t, os.WriteFile(filepath.Join(dir, usage), fmt.Appendf(nil, "%d\n", all), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "memory.stat"), fmt.Appendf(nil, "cache 7\ninactive_file %d\ntotal_inactive_file %d\n", own, reclaimable), 0o644))
}

// rmdir removes a cgroup; one with nested cgroups is refused.
func rmdir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
		}
	}
	return os.RemoveAll(dir)
}

// Value returns the content of a file of a cgroup, or the error.
func Value(cfg cgroups.Config, parts ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{cfg.Mount}, parts...)...))
	if errors.Is(err, fs.ErrNotExist) {
		return "not there"
	}
	if err != nil {
		return fmt.Sprint(err)
	}
	return strings.TrimSpace(string(b))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
