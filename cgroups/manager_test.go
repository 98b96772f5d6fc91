package cgroups_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

var machine = cgroups.Node{CPU: 2000, Memory: 3 << 30, Pids: 23684, CPUs: "0-1", HugePages: []string{"2MB"}}

// open returns a manager whose levels are made.
func open(t *testing.T, cfg cgroups.Config) *cgroups.Manager {
	t.Helper()
	m, err := cgroups.Open(cfg)
	if err == nil {
		err = m.SetUp(t.Context(), cgroups.Cgroupfs, machine)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func expect(t *testing.T, cfg cgroups.Config, rows map[string]string) {
	t.Helper()
	for _, file := range slices.Sorted(maps.Keys(rows)) {
		if got := cgrouptest.Value(cfg, file); got != rows[file] {
			t.Errorf("%s is %q, want %q", file, got, rows[file])
		}
	}
}

var pod = cgroups.Resources{Shares: 102, Quota: 40000, Memory: 64 << 20, HugePages: map[string]int64{"2MB": 0}}

func TestMakesPodsV1(t *testing.T) {
	cfg := cgrouptest.V1(t)
	m := open(t, cfg)
	if m.Unified() {
		t.Error("v1 is taken for v2")
	}
	if err := errors.Join(m.SetBurstable(t.Context(), 600), m.Create(t.Context(), cgroups.Burstable, "u1", pod)); err != nil {
		t.Fatal(err)
	}
	expect(t, cfg, map[string]string{
		"cpu/kubepods/cpu.shares":                                          "2048",
		"memory/kubepods/memory.limit_in_bytes":                            "3221225472",
		"pids/kubepods/pids.max":                                           "23684",
		"hugetlb/kubepods/hugetlb.2MB.limit_in_bytes":                      "4611686018427387904",
		"cpuset/kubepods/cpuset.cpus":                                      "0-1",
		"cpu/kubepods/burstable/cpu.shares":                                "614",
		"cpu/kubepods/besteffort/cpu.shares":                               "2",
		"cpu/kubepods/burstable/podu1/cpu.shares":                          "102",
		"cpu/kubepods/burstable/podu1/cpu.cfs_period_us":                   "100000",
		"cpu/kubepods/burstable/podu1/cpu.cfs_quota_us":                    "40000",
		"memory/kubepods/burstable/podu1/memory.limit_in_bytes":            "67108864",
		"cpuset/kubepods/burstable/podu1/cpuset.cpus":                      "0-1",
		"cpuset/kubepods/burstable/podu1/cpuset.mems":                      "0",
		"hugetlb/kubepods/burstable/podu1/hugetlb.2MB.limit_in_bytes":      "0",
		"hugetlb/kubepods/burstable/podu1/hugetlb.2MB.rsvd.limit_in_bytes": "not there",
		"systemd/kubepods/burstable/podu1/cgroup.procs":                    "",
		"devices/kubepods":                                                 "not there",
	})
}

func TestMakesPodsV2(t *testing.T) {
	cfg := cgrouptest.V2(t)
	m := open(t, cfg)
	if !m.Unified() {
		t.Error("v2 is not seen")
	}
	if err := errors.Join(m.SetBurstable(t.Context(), 600), m.Create(t.Context(), cgroups.Burstable, "u1", pod)); err != nil {
		t.Fatal(err)
	}
	expect(t, cfg, map[string]string{
		"kubepods/cpu.weight":                             "79",
		"kubepods/memory.max":                             "3221225472",
		"kubepods/pids.max":                               "23684",
		"kubepods/hugetlb.2MB.max":                        "4611686018427387904",
		"kubepods/cpuset.cpus":                            "0-1",
		"kubepods/burstable/cgroup.controllers":           "cpu cpuset hugetlb io memory misc pids rdma",
		"kubepods/burstable/cpu.weight":                   "24",
		"kubepods/besteffort/cpu.weight":                  "1",
		"kubepods/burstable/podu1/cgroup.controllers":     "cpu cpuset hugetlb io memory misc pids rdma",
		"kubepods/burstable/podu1/cpu.weight":             "4",
		"kubepods/burstable/podu1/cpu.max":                "40000 100000",
		"kubepods/burstable/podu1/memory.max":             "67108864",
		"kubepods/burstable/podu1/hugetlb.2MB.rsvd.max":   "0",
		"kubepods/burstable/podu1/cgroup.subtree_control": "",
	})
}

func TestACgroupExistsOnlyComplete(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   cgroups.Config
		lacks string // what is taken away of it
	}{
		{"v1", cgrouptest.V1(t), "pids/kubepods/podu1"},
		{"v2", cgrouptest.V2(t), "kubepods/podu1/cgroup.controllers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, c.cfg)
			if m.Exists(cgroups.Guaranteed, "u1") {
				t.Error("exists before it is made")
			}
			if err := m.Create(t.Context(), cgroups.Guaranteed, "u1", pod); err != nil {
				t.Fatal(err)
			}
			if !m.Exists(cgroups.Guaranteed, "u1") || m.Exists(cgroups.Burstable, "u1") {
				t.Error("it does not exist where it was made, or elsewhere too")
			}
			if err := os.RemoveAll(filepath.Join(c.cfg.Mount, c.lacks)); err != nil {
				t.Fatal(err)
			}
			if m.Exists(cgroups.Guaranteed, "u1") {
				t.Error("exists in part")
			}
			if pods := m.Pods(); !pods["u1"] {
				t.Errorf("pods are %v: what is there in part counts", pods)
			}
		})
	}
}

func TestMakesLevelsAgain(t *testing.T) {
	cfg := cgrouptest.V1(t)
	m := open(t, cfg)
	for _, level := range []string{"burstable", "besteffort", ""} {
		if err := cfg.Rmdir(filepath.Join(cfg.Mount, "cpu/kubepods", level)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Create(t.Context(), cgroups.Burstable, "u1", pod); err != nil {
		t.Fatal(err)
	}
	expect(t, cfg, map[string]string{"cpu/kubepods/cpu.shares": "2048", "cpu/kubepods/burstable/podu1/cpu.shares": "102"})
}

func TestDestroysAllOfAPod(t *testing.T) {
	for name, cfg := range map[string]cgroups.Config{"v1": cgrouptest.V1(t), "v2": cgrouptest.V2(t)} {
		t.Run(name, func(t *testing.T) {
			m := open(t, cfg)
			dirs := []string{filepath.Join(cfg.Mount, "kubepods/besteffort/podu1/container")}
			if !m.Unified() {
				dirs = []string{filepath.Join(cfg.Mount, "cpu/kubepods/besteffort/podu1/container"), filepath.Join(cfg.Mount, "devices/kubepods/besteffort/podu1/container")}
			}
			for _, uid := range []string{"u1", "u2"} {
				if err := m.Create(t.Context(), cgroups.BestEffort, uid, cgroups.Resources{Shares: 2}); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range dirs { // as a runtime does
				for p := filepath.Dir(d); len(p) > len(cfg.Mount); p = filepath.Dir(p) {
					defer os.Remove(p)
				}
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Destroy(t.Context(), "u1"); err != nil {
				t.Fatal(err)
			}
			if pods := m.Pods(); len(pods) != 1 || !pods["u2"] {
				t.Errorf("pods %v are left, want u2", pods)
			}
			for _, d := range dirs {
				if _, err := os.Stat(filepath.Dir(d)); err == nil {
					t.Errorf("%s is left", filepath.Dir(d))
				}
			}
			if err := m.Destroy(t.Context(), "u1"); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

func TestDestroyKills(t *testing.T) {
	cfg := cgrouptest.V2(t)
	m := open(t, cfg)
	if err := m.Create(t.Context(), cgroups.Guaranteed, "u1", pod); err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sleep", "3600")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	procs := filepath.Join(cfg.Mount, "kubepods/podu1/cgroup.procs")
	if err := os.WriteFile(procs, []byte("0\n"+strconv.Itoa(program.Process.Pid)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := program.Wait()
		ended <- errors.Join(os.WriteFile(procs, nil, 0o644), err)
	}()
	if err := m.Destroy(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	<-ended
	if s := program.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", program.ProcessState)
	}
}

// Where the kernel can kill a cgroup at once, it does: the processes are not killed one
// by one. The program stands for one that the played kernel has killed.
func TestDestroyLetsTheKernelKill(t *testing.T) {
	cfg := cgrouptest.V2(t)
	m := open(t, cfg)
	if err := m.Create(t.Context(), cgroups.Guaranteed, "u1", pod); err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sleep", "3600")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cfg.Mount, "kubepods/podu1")
	if err := os.WriteFile(dir+"/cgroup.procs", []byte("0\n"+strconv.Itoa(program.Process.Pid)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/cgroup.kill", 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, err := os.OpenFile(dir+"/cgroup.kill", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	told := make(chan string, 1)
	go func() {
		b := make([]byte, 10)
		n, _ := kernel.Read(b)
		told <- string(b[:n])
		_ = os.WriteFile(dir+"/cgroup.procs", nil, 0o644)
	}()
	if err := m.Destroy(t.Context(), "u1"); err != nil {
		t.Error(err)
	}
	select {
	case text := <-told:
		if text != "1" {
			t.Errorf("the kernel is told %q", text)
		}
	default:
		t.Error("the kernel is not told to kill")
	}
	if err := program.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = program.Wait()
	if s := program.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", program.ProcessState)
	}
}

// Before the driver is known no cgroup has a name: no process of the machine is killed, whose root
// holds them all, and no value of the root is written.
func TestNothingIsTouchedBeforeSetUp(t *testing.T) {
	for name, machine := range map[string]func(testing.TB) cgroups.Config{"v1": cgrouptest.V1, "v2": cgrouptest.V2} {
		t.Run(name, func(t *testing.T) {
			cfg := machine(t)
			program := exec.Command("sleep", "3600")
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = program.Wait() }()
			defer func() { _ = program.Process.Kill() }()
			roots, _ := filepath.Glob(filepath.Join(cfg.Mount, "*", "cgroup.procs"))
			for _, procs := range append(roots, filepath.Join(cfg.Mount, "cgroup.procs")) {
				if err := os.WriteFile(procs, []byte(strconv.Itoa(program.Process.Pid)+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before := written(t, cfg.Mount)
			m, err := cgroups.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"destroy": m.Destroy(t.Context(), "u1"),
				"create":  m.Create(t.Context(), cgroups.Burstable, "u1", pod),
				"update":  m.Update(t.Context(), cgroups.Burstable, "u1", pod),
				"refresh": m.Refresh(t.Context()),
				"look":    second(m.Gone(cgroups.Burstable, "u1")),
				"list":    second(m.Missing(map[string]cgroups.Class{"u1": cgroups.Burstable})),
				"measure": second(m.MemoryInUse(cgroups.Burstable, "u1")),
			} {
				if !errors.Is(err, cgroups.ErrNotSetUp) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := errors.Join(m.SetBurstable(t.Context(), 600), m.Dismantle(t.Context())); err != nil {
				t.Error(err)
			}
			if _, ok := m.Counts(); ok || m.Exists(cgroups.Guaranteed, "u1") || len(m.Pods()) > 0 {
				t.Error("there are pods")
			}
			if err := program.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the program: %v", err)
			}
			if after := written(t, cfg.Mount); !maps.Equal(before, after) {
				t.Errorf("the machine has %v, and had %v", after, before)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// written returns all files under a folder with what is in them.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWaitsForABusyFolder(t *testing.T) {
	cfg := cgrouptest.V2(t)
	rmdir, busy := cfg.Rmdir, 3
	cfg.Rmdir = func(dir string) error {
		if busy--; busy >= 0 {
			return &os.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
		}
		return rmdir(dir)
	}
	m := open(t, cfg)
	err := m.Create(t.Context(), cgroups.Guaranteed, "u1", pod)
	if err = errors.Join(err, m.Destroy(t.Context(), "u1")); err != nil || len(m.Pods()) > 0 {
		t.Errorf("%v; pods left: %v", err, m.Pods())
	}
}

func TestRefusesUIDsThatLeadElsewhere(t *testing.T) {
	cfg := cgrouptest.V1(t)
	m := open(t, cfg)
	for _, uid := range []string{"", "..", "../x", "/../../kubepods", "a/b", "a_b", "/", "a.b"} {
		if m.Create(t.Context(), cgroups.Burstable, uid, pod) == nil || m.Exists(cgroups.Burstable, uid) {
			t.Errorf("uid %q is taken", uid)
		}
		if err := m.Destroy(t.Context(), uid); err != nil {
			t.Errorf("uid %q: %v, want nothing done", uid, err)
		}
	}
	expect(t, cfg, map[string]string{"cpu/kubepods/cpu.shares": "2048", "cpu/kubepods/burstable/cpu.shares": "2"})
}

func TestSaysWhatIsMissing(t *testing.T) {
	refused := func(t *testing.T) cgroups.Config {
		cfg := cgrouptest.V2(t)
		control := filepath.Join(cfg.Mount, "cgroup.subtree_control")
		if err := errors.Join(os.Remove(control), os.Mkdir(control, 0o755)); err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, c := range []struct {
		name string
		cfg  cgroups.Config
		says []string
	}{
		{"nothing is mounted", cgroups.Config{Mount: t.TempDir()}, []string{"cpu", "not there"}},
		{"no such mount", cgroups.Config{Mount: "/nowhere"}, []string{"/nowhere"}},
		{"no such root", with(cgrouptest.V1(t), "/mine"), []string{"cgroup root /mine", "/cpu/mine"}},
		{"controllers that are not handed on", refused(t), []string{"kubepods lacks the controllers cpu, cpuset, memory, hugetlb, pids", "is a directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := cgroups.Open(c.cfg)
			if err == nil {
				err = m.SetUp(t.Context(), cgroups.Cgroupfs, machine)
			}
			for _, word := range c.says {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("says %v, want %q in it", err, word)
				}
			}
		})
	}
}

func with(cfg cgroups.Config, root string) cgroups.Config {
	cfg.Root = root
	return cfg
}
