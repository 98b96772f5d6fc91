//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// cluttering has a volume that is mounted.
const cluttering = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sleep, "3600"]
    volumeMounts: [{name: m, mountPath: /m}]
  volumes: [{name: m, emptyDir: {medium: Memory}}]
`

// TestFailedScenarioIsCleared breaks off a scenario as a failure does, with the
// runtime down, a pod of another namespace, and a process that nobody knows of:
// the next one, and the look for leaks, find nothing of it.
func TestFailedScenarioIsCleared(t *testing.T) {
	binary := monopod(t)
	r := open(t, newest())
	w := newWorld(t, r, binary, "failed")
	w.start()
	w.write("left", cluttering)
	other := strings.Replace(w.manifest("other", cluttering), "namespace: failed", "namespace: elsewhere", 1)
	w.writeFile("other.yaml", other)
	w.running("left")
	w.until("the other runs", func() error {
		all, err := r.CRI.Containers(w.Context(), "elsewhere")
		if err == nil && (len(all) != 1 || all[0].State != "Running") {
			err = os.ErrNotExist
		}
		return err
	})
	stray := exec.Command("sleep", "3600")
	check(t, stray.Start())
	ended := make(chan error, 1)
	go func() { ended <- stray.Wait() }()
	cgroup := w.hierarchies("cpu")[0] + w.agent.Cgroups + "/stray"
	check(t, os.Mkdir(cgroup, 0o755))
	check(t, os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(stray.Process.Pid)), 0o644))
	w.kill()
	r.Runtime.Kill()

	w.sweep(t.Context())
	<-ended
	for _, m := range w.hierarchies("") {
		if left, _ := filepath.Glob(m + w.agent.Cgroups + "*"); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	}
	leaks, err := r.Leaks(t.Context())
	check(t, err)
	if len(leaks) > 0 {
		t.Errorf("left: %q", leaks)
	}
	if next := newWorld(t, r, binary, "next"); next.agent.Cgroups == w.agent.Cgroups {
		t.Errorf("the next agent has the same cgroup, %s", w.agent.Cgroups)
	}
}
