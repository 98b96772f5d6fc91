package cgroups_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

func TestNamesThatAPersonGives(t *testing.T) {
	for _, row := range []struct {
		driver     cgroups.Driver
		name, want string
	}{
		{cgroups.Cgroupfs, "/system.slice", "/system.slice"},
		{cgroups.Cgroupfs, "a/b-c", "/a/b-c"},
		{cgroups.Cgroupfs, "../..", "/"},
		{cgroups.Systemd, "system.slice", "/system.slice"},
		{cgroups.Systemd, "/system.slice", "/system.slice"},
		{cgroups.Systemd, "system", "/system.slice"},
		{cgroups.Systemd, "runtime-kube.slice", "/runtime.slice/runtime-kube.slice"},
		{cgroups.Systemd, "/runtime.slice/runtime-kube.slice", "/runtime.slice/runtime-kube.slice"},
		{cgroups.Systemd, "/", "/"},
	} {
		if got := (cgroups.Names{Driver: row.driver}).Existing(row.name); got != row.want {
			t.Errorf("%s with %s: %s, want %s", row.name, row.driver, got, row.want)
		}
	}
}

func TestACgroupOfOthersIsLimited(t *testing.T) {
	values := cgroups.Resources{Shares: 512, Memory: 64 << 20, Pids: 100}
	for name, row := range map[string]struct {
		machine func(testing.TB) cgroups.Config
		dirs    []string
		want    map[string]string
	}{
		"v1": {cgrouptest.V1, []string{"cpu/system.slice", "memory/system.slice", "pids/system.slice"}, map[string]string{
			"cpu/system.slice/cpu.shares": "512", "memory/system.slice/memory.limit_in_bytes": "67108864", "pids/system.slice/pids.max": "100"}},
		"v2": {cgrouptest.V2, []string{"system.slice"}, map[string]string{
			"system.slice/cpu.weight": "20", "system.slice/memory.max": "67108864", "system.slice/pids.max": "100"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := row.machine(t)
			m := open(t, cfg)
			err := m.Limit(t.Context(), "/system.slice", values)
			if missing := filepath.Join(cfg.Mount, row.dirs[0]); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
				t.Errorf("%v, want that %s is missing", err, missing)
			}
			for _, dir := range row.dirs {
				if _, err := os.Stat(filepath.Join(cfg.Mount, dir)); err == nil {
					t.Errorf("%s was made", dir)
				}
				if err := cfg.Mkdir(filepath.Join(cfg.Mount, dir)); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Limit(t.Context(), "/system.slice", values); err != nil {
				t.Fatal(err)
			}
			expect(t, cfg, row.want)
		})
	}
}

func TestTheRootIsNotLimited(t *testing.T) {
	for _, name := range []string{"", "/", "a/.."} {
		if err := open(t, cgrouptest.V2(t)).Limit(t.Context(), name, pod); err == nil {
			t.Errorf("%q is limited", name)
		}
	}
	m, err := cgroups.Open(cgrouptest.V2(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Limit(t.Context(), "/system.slice", pod); !errors.Is(err, cgroups.ErrNotSetUp) {
		t.Errorf("before the driver is known: %v", err)
	}
}
