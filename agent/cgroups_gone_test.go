package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/cgroups"
	"monopod/cri/critest"
)

// cgroupsOf are the folders of all pods' cgroups.
func cgroupsOf(cfg cgroups.Config) []string {
	dirs, _ := filepath.Glob(filepath.Join(cfg.Mount, "*/kubepods/besteffort/pod*"))
	return dirs
}

// liveInCgroups runs a test with an agent whose pods have cgroups on a kernel that is played.
func liveInCgroups(t *testing.T, test func(*rig, cgroups.Config)) {
	g, cfg, _ := cgroupRig(t)
	liveWith(t, func(r *rig) { r.cgroups = g }, func(r *rig) { test(r, cfg) })
}

// removeCgroups removes the cgroups of all pods, whatever is in them.
func (r *rig) removeCgroups(cfg cgroups.Config) {
	r.Helper()
	dirs := cgroupsOf(cfg)
	if len(dirs) == 0 {
		r.Fatal("no pod has a cgroup")
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			r.Fatal(err)
		}
	}
}

func TestAPodWhoseCgroupVanishedIsMadeAgain(t *testing.T) {
	for _, row := range []struct {
		name  string
		again func(r *rig, cfg cgroups.Config)
	}{
		{"of this agent", func(*rig, cgroups.Config) {}},
		{"of an earlier agent", func(r *rig, cfg cgroups.Config) {
			r.stop()
			r.cgroups, _ = cgroupsOn(r.T, cfg)
			r.start()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
				r.want(manifest("web", "img:1"))
				row.again(r, cfg)
				r.want(manifest("web", "img:1"))
				r.removeCgroups(cfg)
				r.after(pleg.RelistWithEvents + 31*time.Second)
				r.expect("default/web-n/c")
				if c, _ := r.Container("c"); c.Attempt != 1 || r.Count("RunPodSandbox") != 2 {
					r.Errorf("attempt %d in the %d. sandbox", c.Attempt, r.Count("RunPodSandbox"))
				}
				if len(cgroupsOf(cfg)) == 0 {
					r.Error("it has no cgroup")
				}
				r.tells("web-n", "Normal Killing spec.containers{c}: Stopping container c: its pod's cgroup is gone", "Normal SandboxChanged")
				made := r.made()
				r.after(time.Minute)
				if r.made() != made {
					r.Error("it was made once more")
				}
			})
		})
	}
}

func TestAJobWhoseCgroupVanishedHasFailed(t *testing.T) {
	liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
		r.want(manifest("job", "img:1", "restartPolicy: Never"))
		r.removeCgroups(cfg)
		r.after(pleg.RelistWithEvents + 31*time.Second)
		r.expect()
		r.endedBy("default/job-n", plan.ReasonCgroupGone)
		r.tells("job-n", "Normal CgroupGone")
	})
}

func TestACgroupThatVanishedBeforeARestartIsMadeAgain(t *testing.T) {
	liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
		r.want(manifest("web", "img:1"))
		r.removeCgroups(cfg)
		r.Exit("c", 137)
		r.after(time.Second)
		r.expect("default/web-n/c")
		if len(cgroupsOf(cfg)) == 0 {
			r.Error("it runs without its cgroup")
		}
	})
}

// What cannot be looked at, or was never there, has not gone.
func TestACgroupThatIsNotKnownToBeGoneChangesNothing(t *testing.T) {
	t.Run("unreadable", func(t *testing.T) {
		liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
			r.want(manifest("web", "img:1"))
			made := r.made()
			for _, dir := range cgroupsOf(cfg) {
				level := filepath.Dir(dir)
				if err := os.Rename(level, level+".away"); err != nil {
					r.Fatal(err)
				}
				if err := os.WriteFile(level, nil, 0o644); err != nil {
					r.Fatal(err)
				}
			}
			r.sync.Wake()
			r.after(time.Minute)
			if r.expect("default/web-n/c"); r.made() != made {
				r.Error("it was made again")
			}
		})
	})
	t.Run("never there", func(t *testing.T) {
		live(t, func(r *rig) {
			r.want(manifest("web", "img:1"))
			made := r.made()
			r.stop()
			r.cgroups, _, _ = cgroupRig(t)
			r.start()
			r.want(manifest("web", "img:1"))
			r.after(time.Minute)
			if r.expect("default/web-n/c"); r.made() != made {
				r.Error("it was made again")
			}
		})
	})
}

// A pod that is being stopped keeps its plan, and others are not disturbed.
func TestOneCgroupThatVanishedConcernsOnePod(t *testing.T) {
	liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
		r.Program("default/a-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("a", "img:1"))
		first := cgroupsOf(cfg)
		r.want(manifest("a", "img:1"), manifest("b", "img:1"))
		for _, dir := range first {
			if err := os.RemoveAll(dir); err != nil {
				r.Fatal(err)
			}
		}
		r.after(20 * time.Second)
		stops := r.Count("StopContainer")
		if r.expect("default/a-n/c", "default/b-n/c"); stops != 1 {
			r.Errorf("%d containers stopped", stops)
		}
		r.after(time.Minute)
		r.expect("default/a-n/c", "default/b-n/c")
		if n := strings.Count(r.log.String(), "sandbox created"); n != 3 {
			r.Errorf("%d sandboxes made, want 3", n)
		}
	})
}
