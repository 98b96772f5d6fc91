package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A CRI-O whose conmon was killed lists a container without a process as running for ever.
func TestAContainerThatHasNoProcessIsRestarted(t *testing.T) {
	proc := t.TempDir()
	process := filepath.Join(proc, "4711")
	prepare := func(r *rig) {
		r.LikeCRIO()
		r.proc = proc
		noErr(t, os.MkdirAll(filepath.Join(proc, "self"), 0o700))
		noErr(t, os.MkdirAll(process, 0o700))
		noErr(t, os.WriteFile(filepath.Join(process, "stat"), []byte("4711 (sh) S 1"), 0o600))
	}
	liveWith(t, prepare, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		r.SetPID("c", 4711)
		noErr(t, os.WriteFile(filepath.Join(process, "cgroup"), []byte("0::/crio-"+r.Containers()[0].ID+"\n"), 0o600))
		r.after(30 * time.Second)
		r.expect("default/web-n/c")
		if n := r.Count("StopContainer"); n != 0 {
			r.Fatalf("it was stopped %d times while it ran", n)
		}
		noErr(t, os.RemoveAll(process))
		r.after(25 * time.Second)
		st := r.status("default/web-n").ContainerStatuses[0]
		if st.RestartCount != 1 || st.State.Running == nil {
			t.Errorf("restarted %d times: %+v", st.RestartCount, st.State)
		}
		if !strings.Contains(r.log.String(), `reason="the runtime lists it as running, and its process is gone"`) {
			t.Error("the log does not say why")
		}
		r.after(time.Minute)
		if n := r.Count("StopContainer"); n != 1 {
			t.Errorf("%d stops", n)
		}
	})
}

// Other runtimes notice such an end themselves, and are asked for nothing.
func TestOnlyCRIOIsAskedForProcesses(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		r.SetPID("c", 4711)
		r.ForgetCalls()
		r.after(time.Minute)
		if n := r.Count("ContainerStatus"); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
}
