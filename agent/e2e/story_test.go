//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

// tellsStories has bash read the stories of testdata/stories, which are what people do.
func tellsStories(w *world) {
	scripts, err := filepath.Glob("../../testdata/stories/*.sh")
	check(w.T, err)
	told := 0
	for _, script := range scripts {
		if filepath.Base(script) == "story.sh" { // what they have in common
			continue
		}
		told++
		w.Run(filepath.Base(script), func(t *testing.T) { w.tell(t, script) })
	}
	if told < 3 {
		w.Errorf("%d stories", told)
	}
}

// tell has bash read a story, and looks for what it left.
func (w *world) tell(t *testing.T, script string) {
	script, err := filepath.Abs(script)
	check(t, err)
	dir := filepath.Join(w.agent.Dir, filepath.Base(script))
	check(t, os.Mkdir(dir, 0o755))
	cmd := exec.CommandContext(t.Context(), "bash", script)
	cmd.Env = append(os.Environ(), "MONOPOD="+w.agent.Binary, "ENDPOINT="+w.agent.Endpoint, "NS="+w.ns, "DIR="+dir, "CGROUPS="+w.agent.Cgroups,
		"IMAGE="+rig.Busybox)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Cancel() })
	out, err := cmd.CombinedOutput()
	late.Stop()
	_ = cmd.Cancel() // an agent that the story left
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	w.until("nothing of it is left", func() error { return w.empty(w.Context()) })
}
