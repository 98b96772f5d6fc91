package cgroups_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

func TestGoneIsProven(t *testing.T) {
	for _, row := range []struct {
		name    string
		machine func(testing.TB) cgroups.Config
		mount   string // of the hierarchy that is harmed
		harm    func(mount, pod string) error
		gone    bool
		unknown bool
	}{
		{"v2, it is there", cgrouptest.V2, "", func(string, string) error { return nil }, false, false},
		{"v2, it was removed", cgrouptest.V2, "", func(_, pod string) error { return os.RemoveAll(pod) }, true, false},
		{"v2, its level was removed", cgrouptest.V2, "", func(_, pod string) error { return os.RemoveAll(filepath.Dir(pod)) }, true, false},
		{"v2, nothing is mounted", cgrouptest.V2, "", func(mount, _ string) error { return emptied(mount) }, false, true},
		{"v2, it cannot be looked at", cgrouptest.V2, "", func(_, pod string) error { return blocked(filepath.Dir(pod)) }, false, true},
		{"v1, it is there", cgrouptest.V1, "memory", func(string, string) error { return nil }, false, false},
		{"v1, it was removed from one hierarchy", cgrouptest.V1, "memory", func(_, pod string) error { return os.RemoveAll(pod) }, true, false},
		{"v1, a hierarchy is not mounted", cgrouptest.V1, "memory", func(mount, _ string) error { return emptied(mount) }, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := row.machine(t)
			m := open(t, cfg)
			err := m.Create(t.Context(), cgroups.BestEffort, "u", cgroups.Resources{Shares: 2})
			mount := filepath.Join(cfg.Mount, row.mount)
			if err == nil {
				err = row.harm(mount, filepath.Join(mount, m.Names().Pod(cgroups.BestEffort, "u")))
			}
			if err != nil {
				t.Fatal(err)
			}
			gone, err := m.Gone(cgroups.BestEffort, "u")
			if gone != row.gone || (err != nil) != row.unknown {
				t.Errorf("gone: %v, %v", gone, err)
			}
			missing, err := m.Missing(map[string]cgroups.Class{"u": cgroups.BestEffort})
			if missing["u"] != row.gone || (err != nil) != row.unknown {
				t.Errorf("missing: %v, %v", missing, err)
			}
		})
	}
}

// emptied leaves of a mounted file system its mount point.
func emptied(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// blocked puts a file in the place of a folder.
func blocked(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.WriteFile(dir, nil, 0o644)
}

func TestCountsTellThatACgroupIsGone(t *testing.T) {
	for name, machine := range map[string]func(testing.TB) cgroups.Config{"v1": cgrouptest.V1, "v2": cgrouptest.V2} {
		cfg := machine(t)
		m := open(t, cfg)
		for _, uid := range []string{"u", "w"} {
			if err := m.Create(t.Context(), cgroups.BestEffort, uid, cgroups.Resources{Shares: 2}); err != nil {
				t.Fatal(err)
			}
		}
		before, ok := m.Counts()
		if again, _ := m.Counts(); !ok || len(before) == 0 || !slices.Equal(before, again) {
			t.Fatalf("%s: %v, then %v, %v", name, before, again, ok)
		}
		dirs, err := filepath.Glob(filepath.Join(cfg.Mount, "memory", m.Names().Pod(cgroups.BestEffort, "u")))
		if name == "v2" {
			dirs, err = filepath.Glob(filepath.Join(cfg.Mount, m.Names().Pod(cgroups.BestEffort, "u")))
		}
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		if err := os.RemoveAll(dirs[0]); err != nil {
			t.Fatal(err)
		}
		if after, ok := m.Counts(); !ok || slices.Equal(before, after) {
			t.Errorf("%s: one is gone: %v, before %v", name, after, before)
		}
		if err := os.RemoveAll(filepath.Dir(dirs[0])); err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Counts(); ok {
			t.Errorf("%s: a level is gone, and it is not said", name)
		}
	}
}
