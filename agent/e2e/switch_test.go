//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

// TestCutSwitches has a containerd of its own, as TestKills has, and for the same reason.
func TestCutSwitches(t *testing.T) {
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := openLeaky(t, version)
			cutsSwitches(newWorld(t, r, binary, "cuts"))
		})
	}
}

// cutsSwitches kills the agent at moments of a replacement, each a little later than the one
// before, and starts another: one version runs then, the new one if its manifest can be read, else
// one of the two.
func cutsSwitches(w *world) {
	host := filepath.Join(w.agent.Dir, "host")
	check(w.T, os.Mkdir(host, 0o755))
	write := func(k int) {
		w.write("cut", fmt.Sprintf("  hostname: v%d", k)+fmt.Sprintf(counted, fmt.Sprintf("v%d", k), host))
	}
	write(0)
	w.start()
	w.runsVersion(host, 0)
	k := 0
	for _, after := range []time.Duration{0, 10, 20, 40, 60, 90, 130, 180, 240, 320} {
		for _, isReadable := range []bool{true, false} {
			k++
			write(k)
			time.Sleep(after * time.Millisecond) // whatever has happened by then must come out well
			w.kill()
			if isReadable {
				w.start()
			} else {
				w.Logf("killed after %d ms, v%d of v%d and v%d runs while no manifest can be read", after, w.startUnread(host, k-1, k), k-1, k)
			}
			w.runsVersion(host, k)
		}
	}
	// See survivesKillsWhileStarting.
	check(w.T, w.rig.Runtime.Restart(w.Context()))
	w.until("/healthz recovers", func() error { return w.agent.Healthy(w.Context()) })
}

// startUnread starts the agent while its folder is not there, and returns which of these versions
// runs then. The folder comes back.
func (w *world) startUnread(host string, of ...int) int {
	w.Helper()
	aside := w.agent.Manifests + ".aside"
	check(w.T, os.Rename(w.agent.Manifests, aside))
	w.start()
	is := w.runsVersion(host, of...)
	check(w.T, os.RemoveAll(w.agent.Manifests))
	check(w.T, os.Rename(aside, w.agent.Manifests))
	return is
}

// runsVersion waits until one of these versions runs, once, in the only sandbox that is ready, and
// of all others nothing. It returns which.
func (w *world) runsVersion(host string, of ...int) (is int) {
	w.Helper()
	w.untilFreed(fmt.Sprintf("one of the versions %v runs", of), func() error {
		var programs []int
		for k := range of[len(of)-1] + 1 {
			for range processes(filepath.Join(host, fmt.Sprintf("v%d", k))) {
				programs = append(programs, k)
			}
		}
		var ready []rig.Sandbox
		for _, s := range w.sandboxes("cut") {
			if s.Ready {
				ready = append(ready, s)
			}
		}
		if len(programs) != 1 || !slices.Contains(of, programs[0]) || len(ready) != 1 {
			return fmt.Errorf("programs of the versions %v run, in the sandboxes %+v", programs, ready)
		}
		is = programs[0]
		return nil
	})
	return is
}
