package cgroups_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

// In a container with a cgroup namespace of its own pods have cgroups with all controllers, and its
// processes, also those that start meanwhile, are in one of their own.
func TestProcessesOfAContainerMoveAside(t *testing.T) {
	cfg := cgrouptest.V2Container(t, "1", "17")
	kernel, forks := cfg.Write, 3
	cfg.Write = func(file, value string) error {
		err := kernel(file, value)
		if top := filepath.Join(cfg.Mount, "cgroup.procs"); file == filepath.Join(cfg.Mount, "init/cgroup.procs") && forks > 0 {
			forks--
			return os.WriteFile(top, []byte(cgrouptest.Value(cfg, "cgroup.procs")+"\n2"+value), 0o644)
		}
		return err
	}
	m := open(t, cfg)
	if err := m.Create(t.Context(), cgroups.Burstable, "u1", pod); err != nil {
		t.Fatal(err)
	}
	expect(t, cfg, map[string]string{
		"cgroup.procs":      "",
		"init/cgroup.procs": "1\n17\n21\n217\n221",
		"kubepods/burstable/podu1/cgroup.controllers": "cpu cpuset hugetlb io memory misc pids rdma",
		"kubepods/burstable/podu1/memory.max":         "67108864",
	})
}

// A process that ends before it is moved is none that is in the way.
func TestAProcessOfAContainerThatEndsNeedNotMove(t *testing.T) {
	cfg := cgrouptest.V2Container(t, "1", "17")
	kernel := cfg.Write
	cfg.Write = func(file, value string) error {
		err := kernel(file, value)
		if value == "17" {
			return &os.PathError{Op: "write", Path: file, Err: syscall.ESRCH}
		}
		return err
	}
	open(t, cfg)
	expect(t, cfg, map[string]string{"cgroup.procs": "", "kubepods/memory.max": "3221225472"})
}

func TestProcessesThatAreNotAContainersStay(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   func(t *testing.T) cgroups.Config
		procs string // the file that keeps them
		stay  string
		says  string
	}{
		{"the cgroup at the mount point is not a container's", func(t *testing.T) cgroups.Config {
			cfg := cgrouptest.V2Container(t, "1", "17")
			cfg.IsContainers = func(string) bool { return false }
			return cfg
		}, "cgroup.procs", "1\n17", "has processes of its own, and so the kernel delegates no controllers below it: move them to another cgroup"},
		{"they are in a cgroup below it, which is somebody's", func(t *testing.T) cgroups.Config {
			cfg := with(cgrouptest.V2Container(t), "/mine")
			if err := cfg.Mkdir(cfg.Mount + "/mine"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cfg.Mount+"/mine/cgroup.procs", []byte("17"), 0o644); err != nil {
				t.Fatal(err)
			}
			return cfg
		}, "mine/cgroup.procs", "17", "/mine has processes of its own"},
		{"one is of another pid namespace", func(t *testing.T) cgroups.Config { return cgrouptest.V2Container(t, "17", "0") },
			"cgroup.procs", "17\n0", "has a process of another pid namespace: start monopod in that of the container"},
		{"there are ever more", func(t *testing.T) cgroups.Config {
			cfg := cgrouptest.V2Container(t, "17")
			kernel := cfg.Write
			cfg.Write = func(file, value string) error {
				if strings.HasSuffix(file, "/cgroup.procs") {
					return nil
				}
				return kernel(file, value)
			}
			return cfg
		}, "cgroup.procs", "17", "gets processes again and again"},
		{"the kernel moves none", func(t *testing.T) cgroups.Config {
			cfg := cgrouptest.V2Container(t, "17")
			kernel := cfg.Write
			cfg.Write = func(file, value string) error {
				if strings.HasSuffix(file, "/cgroup.procs") {
					return &os.PathError{Op: "write", Path: file, Err: syscall.EACCES}
				}
				return kernel(file, value)
			}
			return cfg
		}, "cgroup.procs", "17", "the processes of this container are not moved aside: write "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.cfg(t)
			m, err := cgroups.Open(cfg)
			if err == nil {
				err = m.SetUp(t.Context(), cgroups.Cgroupfs, machine)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "lacks the controllers cpu, cpuset, memory") {
				t.Errorf("says %v, want %q", err, c.says)
			}
			expect(t, cfg, map[string]string{c.procs: c.stay})
			if delegates := cgrouptest.Value(cfg, filepath.Dir(c.procs), "cgroup.subtree_control"); delegates != "" {
				t.Errorf("it delegates %s: with its processes none is to be delegated", delegates)
			}
		})
	}
}
