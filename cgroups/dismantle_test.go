package cgroups_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

func TestDismantleRemovesItsOwnAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name, cpu string // where cpu is governed
		cfg       cgroups.Config
	}{
		{"v1", "cpu", cgrouptest.V1(t)},
		{"v2", "", cgrouptest.V2(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared, cfg := open(t, c.cfg), c.cfg
			cfg.Own = "once-1"
			m := open(t, cfg)
			if err := m.Create(t.Context(), cgroups.Burstable, "u1", pod); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(cfg.Mount, c.cpu, "once-1/kubepods/burstable/podu1")
			if _, err := os.Stat(at); err != nil {
				t.Fatal(err)
			}
			procs := filepath.Join(at, "cgroup.procs")
			if err := os.WriteFile(procs, []byte("1073741824\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := m.Dismantle(t.Context()); err == nil || !strings.Contains(err.Error(), "1073741824") {
				t.Errorf("with a process in it: %v", err)
			}
			if err := os.WriteFile(procs, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := m.Dismantle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(cfg.Mount, "*", "once-1")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := os.Stat(filepath.Join(cfg.Mount, c.cpu, "once-1")); err == nil {
				t.Error("its own cgroup is left")
			}
			if err := shared.Dismantle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(cfg.Mount, c.cpu, "kubepods/burstable")); err != nil {
				t.Error("the levels that all share are gone")
			}
		})
	}
}
