package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// The agent rotates the logs of what runs, without a call where there is
// nothing to do; a container that is removed takes its former logs with it.
func TestRotatesLogs(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.LogMaxSize = resource.MustParse("100") } }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		c, _ := r.Container("web-n/c")
		if n := r.Count("ReopenContainerLog"); n != 0 || r.Count("ContainerStatus") > 5 {
			r.Errorf("reopened %d times, asked %d times for a small log", n, r.Count("ContainerStatus"))
		}
		log := filepath.Join(r.dir, "logs", "default_web-n_"+c.UID, "c", "0.log")
		if err := os.WriteFile(log, make([]byte, 100), 0o640); err != nil {
			t.Fatal(err)
		}
		r.after(10 * time.Second)
		if c, _ = r.Container("web-n/c"); c.Reopened != 1 {
			r.Errorf("reopened %d times", c.Reopened)
		}
		if former, _ := filepath.Glob(log + ".*"); len(former) != 1 {
			r.Errorf("former logs: %s", former)
		}
		for range 2 {
			r.Exit("c", 1)
			r.after(time.Minute)
		}
		if all, _ := filepath.Glob(log + "*"); len(all) != 0 {
			r.Errorf("of a removed container is left %s", all)
		}
	})
}

// While the runtime does not answer, no log is renamed.
func TestLeavesLogsWhileTheRuntimeIsAway(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.LogMaxSize = resource.MustParse("100") } }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		c, _ := r.Container("web-n/c")
		log := filepath.Join(r.dir, "logs", "default_web-n_"+c.UID, "c", "0.log")
		r.Stop()
		r.after(time.Second)
		if err := os.WriteFile(log, make([]byte, 100), 0o640); err != nil {
			t.Fatal(err)
		}
		r.after(time.Minute)
		if _, err := os.Stat(log); err != nil {
			r.Error(err)
		}
		r.Resume()
		r.after(20 * time.Second)
		if c, _ = r.Container("web-n/c"); c.Reopened != 1 {
			r.Errorf("reopened %d times", c.Reopened)
		}
	})
}

// A runtime that is lost while it reopens a log may have told another to do it: the log
// keeps its new name and is reopened once the runtime is back.
func TestALogThatTheRuntimeIsLostOverIsReopenedLater(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.LogMaxSize = resource.MustParse("100") } }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		c, _ := r.Container("web-n/c")
		log := filepath.Join(r.dir, "logs", "default_web-n_"+c.UID, "c", "0.log")
		r.Fault(critest.On("ReopenContainerLog").Nth(1).Fail(codes.Unavailable, "error reading from server: EOF"))
		if err := os.WriteFile(log, make([]byte, 100), 0o640); err != nil {
			t.Fatal(err)
		}
		renamed := 0
		for range 25 {
			r.after(time.Second)
			if _, err := os.Stat(log); err != nil {
				renamed++
			}
		}
		if c, _ = r.Container("web-n/c"); c.Reopened != 1 || renamed < 5 || renamed > 10 {
			r.Errorf("reopened %d times, without its name for %d s", c.Reopened, renamed)
		}
	})
}
