package cgroups_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

func TestMemoryInUseIsWithoutWhatCanBeReclaimed(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  cgroups.Config
		stat string
	}{
		{"v1", cgrouptest.V1(t), "memory/kubepods/burstable/pod1/memory.stat"},
		{"v2", cgrouptest.V2(t), "kubepods/burstable/pod1/memory.stat"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := open(t, row.cfg)
			if err := m.SetUp(t.Context(), cgroups.Cgroupfs, cgroups.Node{}); err != nil {
				t.Fatal(err)
			}
			if _, err := m.MemoryInUse(cgroups.Burstable, "1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("without a cgroup: %v", err)
			}
			if err := m.Create(t.Context(), cgroups.Burstable, "1", cgroups.Resources{Memory: 64 << 20}); err != nil {
				t.Fatal(err)
			}
			used := func(when string, want int64) {
				t.Helper()
				if n, err := m.MemoryInUse(cgroups.Burstable, "1"); n != want || err != nil {
					t.Errorf("%s: %d, %v", when, n, err)
				}
			}
			used("nothing", 0)
			cgrouptest.Use(t, row.cfg, "kubepods/burstable/pod1", 50<<20, 20<<20)
			used("files that were read", 30<<20)
			cgrouptest.Use(t, row.cfg, "kubepods/burstable/pod1", 1<<20, 2<<20)
			used("counted at two moments", 0)
			if err := os.WriteFile(filepath.Join(row.cfg.Mount, row.stat), []byte("cache 7\ninactive_file many\ntotal_inactive_file many\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if n, err := m.MemoryInUse(cgroups.Burstable, "1"); err == nil {
				t.Errorf("what is no number: %d", n)
			}
		})
	}
}
