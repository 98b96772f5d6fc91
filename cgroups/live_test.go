package cgroups_test

import (
	"os"
	"path/filepath"
	"testing"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

func TestAContainerIsLiveWhoseCgroupHasProcesses(t *testing.T) {
	for _, row := range []struct {
		name  string
		procs map[string]string // by cgroup in the pod's
		want  bool
	}{
		{"both, by cgroupfs", map[string]string{"aaa": "1\n", "bbb": "2\n3\n"}, true},
		{"both, by systemd and with cgroups of their own", map[string]string{"crio-aaa.scope": "1\n", "cri-containerd-bbb.scope": "", "cri-containerd-bbb.scope/init.scope": "1\n"}, true},
		{"one has no process", map[string]string{"aaa": "1\n", "bbb": ""}, false},
		{"one has no cgroup", map[string]string{"aaa": "1\n", "": "2\n"}, false},
		{"a process of the sandbox", map[string]string{"ccc": "1\n"}, false},
		{"nothing", nil, false},
	} {
		for version, machine := range map[string]func(testing.TB) cgroups.Config{"v1": cgrouptest.V1, "v2": cgrouptest.V2} {
			t.Run(row.name+", "+version, func(t *testing.T) {
				cfg := machine(t)
				m := open(t, cfg)
				if err := m.Create(t.Context(), cgroups.BestEffort, "u", cgroups.Resources{Shares: 2}); err != nil {
					t.Fatal(err)
				}
				controller := map[string]string{"v1": "memory"}[version]
				for name, ids := range row.procs {
					dir := filepath.Join(cfg.Mount, controller, m.Names().Pod(cgroups.BestEffort, "u"), name)
					if err := os.MkdirAll(dir, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(ids), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if got := m.Live(cgroups.BestEffort, "u", []string{"aaa", "bbb"}); got != row.want {
					t.Errorf("live: %v, want %v", got, row.want)
				}
			})
		}
	}
}
