package gc

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

// The processes of a pod that adopt said is left are not the agent's to kill. The cgroups are played.
func TestAttackAPodThatWasLeftRunsOn(t *testing.T) {
	cfg := cgrouptest.V1(t)
	m, err := cgroups.Open(cfg)
	noErr(t, err)
	log := slog.New(slog.DiscardHandler)
	g := &node.PodCgroups{Metrics: metrics.New(metrics.Config{}), Manager: m, Machine: &node.Node{Base: podspec.Host{Memory: 1 << 30}}, Log: log, Burstable: map[string]int64{}}
	noErr(t, g.SetUp(t.Context(), cgroups.Cgroupfs))
	process := exec.Command("sleep", "60")
	noErr(t, process.Start())
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	defer process.Process.Kill()
	hierarchies, _ := filepath.Glob(filepath.Join(cfg.Mount, "*", "kubepods", "besteffort"))
	for _, dir := range hierarchies {
		noErr(t, os.MkdirAll(filepath.Join(dir, "podstranger"), 0o755))
		noErr(t, os.WriteFile(filepath.Join(dir, "podstranger", "cgroup.procs"), fmt.Appendf(nil, "%d\n", process.Process.Pid), 0o644))
	}
	root, err := checkpoint.OpenRoot(t.TempDir())
	noErr(t, err)
	defer root.Close()
	noErr(t, os.MkdirAll(root.PodDir("stranger"), 0o755)) // as a kubelet makes it
	c := &Garbage{Root: root, Log: log, PodLogs: t.TempDir(), Metrics: metrics.New(metrics.Config{}), Cgroups: g}
	c.CollectPods(t.Context(), nil, true)
	select {
	case err := <-ended:
		t.Errorf("of %d hierarchies: the container's process: %v", len(hierarchies), err)
	case <-time.After(100 * time.Millisecond):
	}
}
