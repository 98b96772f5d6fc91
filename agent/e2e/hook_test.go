//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// notes returns a folder of the host for containers to write into, and the path
// of a file there.
func (w *world) notes() (dir, file string) {
	w.Helper()
	dir = filepath.Join(w.agent.Dir, "notes")
	check(w.T, os.MkdirAll(dir, 0o755))
	return dir, filepath.Join(dir, "said")
}

// said waits until the file holds these lines.
func (w *world) said(file string, lines ...string) {
	w.Helper()
	want := strings.Join(lines, "\n") + "\n"
	w.until(file, func() error {
		b, err := os.ReadFile(file)
		if err == nil && string(b) != want {
			err = fmt.Errorf("it says %q, want %q", b, want)
		}
		return err
	})
}

// noter is a container that says what it does in /notes/said.
func noter(name, script, more string) string {
	return fmt.Sprintf("  - name: %s\n    image: registry.test/busybox:1\n    command: [sh, -c, %q]\n    volumeMounts: [{name: notes, mountPath: /notes}]\n%s",
		name, script, more)
}

func notesVolume(dir string) string {
	return fmt.Sprintf("  volumes:\n  - {name: notes, hostPath: {path: %s}}\n", dir)
}

const untilTerm = "trap 'echo term >> /notes/said; exit 0' TERM; sleep 3600 & wait"

// callers is a web server that keeps who called.
type callers struct {
	mu   sync.Mutex
	all  []string
	port int
}

func newCallers(w *world) *callers {
	l, err := net.Listen("tcp", ":0")
	check(w.T, err)
	c := &callers{port: l.Addr().(*net.TCPAddr).Port}
	s := &http.Server{Handler: c, ReadHeaderTimeout: time.Second}
	go s.Serve(l)
	w.Cleanup(func() { s.Close() })
	return c
}

func (c *callers) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, in.URL.Path+" by "+in.UserAgent())
	http.Error(out, "any answer will do", http.StatusTeapot)
}

func (c *callers) were(want ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.all, ", "); got != strings.Join(want, ", ") {
		return fmt.Errorf("called: %s", got)
	}
	return nil
}

// runsHooks runs an exec and an httpGet after the start, in order, and an
// httpGet before the stop.
func runsHooks(w *world) {
	w.start()
	c := newCallers(w)
	dir, file := w.notes()
	w.write("hooks", "  hostNetwork: true\n  terminationGracePeriodSeconds: 5\n  containers:\n"+
		noter("first", untilTerm, "    lifecycle: {postStart: {exec: {command: [sh, -c, 'sleep 0.5; echo hook >> /notes/said']}}}\n")+
		noter("second", "echo second >> /notes/said; "+untilTerm, fmt.Sprintf("    ports: [{name: web, containerPort: %d}]\n", c.port)+
			"    lifecycle: {postStart: {httpGet: {port: web, path: /hello}}, preStop: {httpGet: {port: web, path: /bye}}}\n")+
		notesVolume(dir))
	w.phase("hooks", v1.PodRunning)
	w.said(file, "hook", "second")
	const agent = " by kube-lifecycle/1.36"
	w.until("the web server was called", func() error { return c.were("/hello" + agent) })
	w.status("hooks", "is ready", ready)
	w.remove("hooks")
	w.until("it is gone", func() error { return none(w.sandboxes("hooks")) })
	w.until("the web server was called", func() error { return c.were("/hello"+agent, "/bye"+agent) })
}

func ready(s v1.PodStatus) bool {
	for _, c := range s.ContainerStatuses {
		if !c.Ready {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}

func restartsAfterAFailedHook(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("fails", "  hostNetwork: true\n  terminationGracePeriodSeconds: 2\n  containers:\n"+
		noter("main", strings.Replace(untilTerm, "; sleep", "; touch /notes/up; sleep", 1), // the hook waits for the trap
			"    lifecycle: {postStart: {exec: {command: [sh, -c, 'while [ ! -e /notes/up ]; do sleep 0.1; done; rm /notes/up; test -e /notes/may']}}}\n")+notesVolume(dir))
	w.status("fails", "waits", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].RestartCount == 1 &&
			s.ContainerStatuses[0].State.Waiting != nil && s.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	w.said(file, "term", "term")
	check(w.T, os.WriteFile(filepath.Join(dir, "may"), nil, 0o644))
	w.successor("fails", 2)
	w.status("fails", "is ready", ready)
}

// runsAnInterruptedHookAgain kills the agent while a postStart hook runs, and
// again when it is done.
func runsAnInterruptedHookAgain(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("again", "  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers:\n"+
		noter("main", untilTerm, "    lifecycle: {postStart: {exec: {command: [sh, -c, 'echo hook >> /notes/said; while [ ! -e /notes/may ]; do sleep 0.1; done']}}}\n")+notesVolume(dir))
	w.said(file, "hook")
	before := w.running("again")
	w.kill()
	w.start()
	w.said(file, "hook", "hook")
	w.status("again", "waits for its hook", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil && s.ContainerStatuses[0].State.Waiting.Reason == "ContainerCreating"
	})
	check(w.T, os.WriteFile(filepath.Join(dir, "may"), nil, 0o644))
	w.status("again", "is ready", ready)
	w.kill()
	w.start()
	w.barrier("after")
	w.said(file, "hook", "hook")
	w.same(before)
}
