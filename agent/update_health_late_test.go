package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/cgroups"
	"monopod/cri/critest"
)

// A runtime with a lot to do lists a container as running for seconds after its end. Until then only
// its cgroup tells.
func TestAVersionThatEndedIsNotHealthyThoughTheRuntimeListsItAsRunning(t *testing.T) {
	for _, row := range []struct {
		name     string
		process  string // what the kernel lists in the cgroup of its container
		ends     bool   // the runtime tells of its end 3 s later
		healthy  time.Duration
		rollback bool
	}{
		{"it runs", "4711\n", false, time.Second, false},
		{"its end is told late", "", true, 0, true},
		{"its processes are not shown", "", false, 11 * time.Second, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, cfg, _ := cgroupRig(t)
			liveWith(t, func(r *rig) {
				r.cgroups = g
				r.configure = func(c *config.Config) { c.UpdateStable = time.Second }
			}, func(r *rig) {
				if row.ends {
					r.Program("img:2", critest.ExitsAfter(3*time.Second, 1))
				}
				r.want(manifest("web", "img:1"))
				former := r.imageID()
				r.want(watched("img:2"))
				r.showProcess(cfg, row.process)
				const passed = "new version is ready and stays"
				if row.rollback {
					r.after(time.Minute)
					r.isBack(former, "it was ready, and ")
					return
				}
				r.after(row.healthy - 100*time.Millisecond)
				if strings.Contains(r.log.String(), passed) {
					t.Errorf("it passed sooner than after %s", row.healthy)
				}
				r.after(200 * time.Millisecond)
				if !strings.Contains(r.log.String(), passed) {
					t.Errorf("it did not pass after %s", row.healthy)
				}
				r.stays("img:2")
			})
		})
	}
}

// showProcess lists a process in the cgroups of the container that runs.
func (r *rig) showProcess(cfg cgroups.Config, pid string) {
	r.Helper()
	c, ok := r.Container("c")
	if !ok {
		r.Fatal("no container")
	}
	for _, pod := range cgroupsOf(cfg) {
		dir := filepath.Join(pod, c.ID)
		if err := os.Mkdir(dir, 0o755); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0o644); err != nil {
			r.Fatal(err)
		}
	}
}
