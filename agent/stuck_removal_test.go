package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/cgroups"
	"monopod/cri/critest"
)

// A containerd may keep the process of a container whose start was broken off, call the container
// dead, and refuse to remove it as long as the process lives.
func TestWhatARuntimeKeepsIsKilledWhenItRefusesToRemoveAPod(t *testing.T) {
	kept := exec.Command("sleep", "3600")
	noErr(t, kept.Start())
	var dead atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = kept.Wait() // it is killed
		dead.Store(true)
	}()
	defer func() { _ = kept.Process.Kill(); <-ended }()
	liveInCgroups(t, func(r *rig, cfg cgroups.Config) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		for _, dir := range cgroupsOf(cfg) {
			noErr(r.T, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(kept.Process.Pid)), 0o600))
		}
		r.Fault(critest.On("RemovePodSandbox").Fail(codes.Unknown, "cannot delete running task"))
		r.want()
		r.after(time.Second)
		if dead.Load() {
			r.Error("it was killed at the first failures")
		}
		r.after(time.Minute)
	})
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the process lives")
	}
}
