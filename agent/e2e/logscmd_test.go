//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
	"monopod/agent/logrotate"
	"monopod/cri"
)

// restless writes numbered lines, 3000 each time it is started, crashes after
// each of the first three, and then goes on living. For every 240 lines it waits
// until its log was rotated since the last time, of which /made/count tells.
const restless = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "n=$(cat /s/n 2>/dev/null || echo 0); echo $((n+1)) > /s/n; i=0; m=$(cat /made/count); while [ $i -lt 50 ]; do awk -v b=$((n*3000+i*60)) 'BEGIN{for(k=b;k<b+60;k++) printf \"%%0200d\\n\", k}'; i=$((i+1)); sleep 0.05; if [ $((i%%4)) = 0 ]; then while [ $(cat /made/count) -le $m ]; do sleep 0.05; done; m=$(cat /made/count); fi; done; [ $n -lt 3 ] && exit 1; exec sleep 3600"]
    volumeMounts: [{name: s, mountPath: /s}, {name: made, mountPath: /made}]
  volumes: [{name: s, emptyDir: {}}, {name: made, hostPath: {path: %s}}]
`

const (
	restlessLines     = 4 * 3000
	restlessRotations = 4 * 12 // that it waits for
)

// followsLogs follows a container through many rotations, of which a Rotator
// other than the agent's makes more than the agent may, and three restarts; then
// it looks at what is left while the agent is down.
func followsLogs(w *world) {
	w.agent.Settings += "containerLogMaxSize: 1Gi\ncrashLoopBackOff: {firstContainerRestartPeriod: 100ms, maxContainerRestartPeriod: 1s}\n"
	w.start()
	made := filepath.Join(w.agent.Dir, "made")
	check(w.T, os.Mkdir(made, 0o755))
	check(w.T, os.WriteFile(filepath.Join(made, "count"), []byte("0\n"), 0o644))
	w.write("restless", fmt.Sprintf(restless, made))
	w.status("restless", "is known", func(v1.PodStatus) bool { return true })
	f := w.followLogs("restless")
	rotated := w.rotate("restless", made)
	check(w.T, rig.Until(w.Context(), 3*limit, func() error {
		if n := f.lines(); n < restlessLines {
			return fmt.Errorf("%d lines are written", n)
		}
		return nil
	}))
	opened := rotated()
	w.Logf("%d rotations", opened)
	if opened < restlessRotations {
		w.Errorf("only %d rotations", opened)
	}
	if lines := f.numbered(restlessLines); lines != "" {
		w.Error(lines)
	}
	ask := func(want string, args ...string) {
		w.Helper()
		got, err := w.agent.CLI(w.Context(), "logs", append([]string{"restless", "--root", w.agent.Root, "--pod-logs", w.agent.PodLogs}, args...)...)
		if err != nil || got != want {
			w.Errorf("logs %s: %q, %v, want %q", args, got, err, want)
		}
	}
	tail := fmt.Sprintf("%0200d\n%0200d\n", restlessLines-2, restlessLines-1)
	ask(tail, "--tail", "2")
	ask(fmt.Sprintf("%0200d\n", restlessLines-3001), "--tail", "1", "--previous")
	if code, body, err := w.agent.Get(w.Context(), "/containerLogs/"+w.ns+"/"+name("restless")+"/main?tailLines=2"); code != 200 || body != tail || err != nil {
		w.Errorf("/containerLogs: %d %q, %v", code, body, err)
	}
	w.kill()
	ask(tail, "--tail", "2")
	w.start()
	w.remove("restless")
	select {
	case err := <-f.done:
		if err != nil || f.lines() != restlessLines {
			w.Errorf("following ended with %v after %d lines: %s", err, f.lines(), f.notes.String())
		}
	case <-time.After(limit):
		w.Error("following does not end with the pod")
	}
}

// followedLog is what `monopod logs -f` printed.
type followedLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	notes bytes.Buffer // once it is done
	done  chan error
}

func (f *followedLog) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

func (f *followedLog) lines() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Count(f.text.Bytes(), []byte("\n"))
}

// numbered says what is wrong if not each line from 0 on is there once.
func (f *followedLog) numbered(lines int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for line := range strings.Lines(f.text.String()) {
		if line != fmt.Sprintf("%0200d\n", n) {
			return fmt.Sprintf("after line %d comes %q", n-1, strings.TrimLeft(line, "0"))
		}
		n++
	}
	if n != lines {
		return fmt.Sprintf("%d lines, want %d", n, lines)
	}
	return ""
}

func (w *world) followLogs(pod string) *followedLog {
	f := &followedLog{done: make(chan error, 1)}
	cmd := exec.Command(w.agent.Binary, "logs", "-f", pod, "--socket", w.agent.Socket, "--root", w.agent.Root, "--pod-logs", w.agent.PodLogs)
	cmd.Stdout, cmd.Stderr = f, &f.notes
	check(w.T, cmd.Start())
	ended := make(chan struct{})
	go func() { f.done <- cmd.Wait(); close(ended) }()
	w.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT)
		<-ended
	})
	return f
}

// restlessRuntime is the containers of a pod for a Rotator.
type restlessRuntime struct {
	w    *world
	pod  string
	cri  *cri.Client
	made int
	dir  string // where it tells that
}

func (r *restlessRuntime) Running(ctx context.Context) ([]logrotate.Container, error) {
	all, err := r.w.rig.CRI.Containers(ctx, r.w.ns)
	dirs, _ := filepath.Glob(filepath.Join(r.w.agent.PodLogs, r.w.ns+"_"+name(r.pod)+"_*", "main"))
	var out []logrotate.Container
	for _, c := range all {
		if c.Pod == name(r.pod) && c.State == "Running" && len(dirs) == 1 {
			out = append(out, logrotate.Container{ID: c.ID, Log: filepath.Join(dirs[0], fmt.Sprintf("%d.log", c.Attempt))})
		}
	}
	return out, err
}

func (r *restlessRuntime) Log(context.Context, string) (string, error) { return "", nil }

func (r *restlessRuntime) Reopen(ctx context.Context, id string) error {
	if err := r.cri.ReopenContainerLog(ctx, id); err != nil {
		return err
	}
	r.made++ // by one worker
	return r.tell()
}

func (r *restlessRuntime) tell() error {
	temp := filepath.Join(r.dir, "next")
	if err := os.WriteFile(temp, fmt.Appendln(nil, r.made), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(r.dir, "count"))
}

// rotate rotates a pod's logs much oftener than an agent does, until the
// function that it returns is called, which returns how often. How often so far
// is told in a folder.
func (w *world) rotate(pod, dir string) func() int {
	c, err := cri.Dial(w.rig.Runtime.Endpoint)
	check(w.T, err)
	rt := &restlessRuntime{w: w, pod: pod, cri: c, dir: dir}
	r := logrotate.New(logrotate.Config{MaxSize: 16 << 10, MaxFiles: 8, Interval: 100 * time.Millisecond}, rt, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.Context())
	var run sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	stop := sync.OnceValue(func() int {
		cancel()
		run.Wait()
		c.Close()
		return rt.made
	})
	w.Cleanup(func() { stop() })
	return stop
}
