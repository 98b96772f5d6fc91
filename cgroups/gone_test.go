package cgroups_test

import (
	"os"
	"path/filepath"
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
