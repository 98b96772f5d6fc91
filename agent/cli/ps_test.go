package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/client"
	"monopod/agent/events"
	"monopod/agent/server"
	"monopod/agent/status"
)

var update = flag.Bool("update", false, "write what is printed to testdata")

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// golden compares got with testdata/<test name>.txt.
func golden(t *testing.T, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test"))+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// podsOf reads pods, written as YAML in the manner of a List's items.
func podsOf(t *testing.T, text string) (pods []*v1.Pod) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &pods); err != nil {
		t.Fatal(err)
	}
	return pods
}

// anAgent serves pods, written as YAML in the manner of a List's items, and the
// other reports on a socket.
func anAgent(t *testing.T, pods string, m status.Manifests, r status.Runtime) (socket string) {
	t.Helper()
	log := discard()
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range podsOf(t, pods) {
		store.SetPod(p.Namespace+"/"+p.Name, p)
	}
	store.SetManifests(m)
	store.SetRuntime(r)
	socket = filepath.Join(t.TempDir(), "s")
	s, err := server.Listen(server.Config{Socket: socket, Store: store, Log: log, Events: events.Open(events.Config{Log: log})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		store.Close(context.Background())
	})
	return socket
}

const well = `
- metadata: {name: web-node1, namespace: default, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: Node1, containers: [{name: app, image: nginx:1}, {name: log, image: "registry.example/some/log@sha256:0"}]}
  status:
    phase: Running
    podIP: 10.88.0.4
    containerStatuses:
    - {name: app, ready: true, restartCount: 2, state: {running: {}}, lastState: {terminated: {exitCode: 1, finishedAt: "2026-05-04T11:58:00Z"}}}
    - {name: log, ready: true, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 1, finishedAt: "2026-05-04T11:50:00Z"}}}
- metadata: {name: a-name-that-is-longer-than-most-names-of-pods-but-still-a-name-node1, namespace: default}
  spec: {nodeName: Node1, containers: [{name: app, image: busybox}]}
  status: {phase: Pending, startTime: "2026-05-04T11:59:57Z", containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}
`

const troubled = `
- metadata: {name: crash, namespace: default, creationTimestamp: "2026-05-01T12:00:00Z"}
  spec: {containers: [{name: app}, {name: ok}]}
  status:
    phase: Running
    containerStatuses:
    - {name: app, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 20s restarting failed container"}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-05-04T11:59:50Z"}}}
    - {name: ok, ready: true, state: {running: {}}}
- metadata: {name: done, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Succeeded, containerStatuses: [{name: app, state: {terminated: {exitCode: 0, reason: Completed}}}]}
- metadata: {name: evil, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: RunContainerError, message: "line one\nline two \u001b[2J"}}}]}
- metadata: {name: failed, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Failed, containerStatuses: [{name: app, state: {terminated: {exitCode: 3, reason: Error, message: "no such table"}}}]}
- metadata: {name: full, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Pending, reason: OutOfcpu, message: "asks for 8 cpus, 2 are free"}
- metadata: {name: going, namespace: default, deletionTimestamp: "2026-05-04T11:59:00Z"}
  spec: {containers: [{name: app}]}
  status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}
- metadata: {name: half-done, namespace: default}
  spec: {containers: [{name: a}, {name: b}]}
  status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}, {name: b, ready: true, state: {running: {}}}]}
- metadata: {name: half-ready, namespace: default}
  spec: {containers: [{name: a}, {name: b}]}
  status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}, {name: b, ready: true, state: {running: {}}}]}
- metadata: {name: image, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling image \"x\""}}}]}
- metadata: {name: init-error, namespace: default}
  spec: {initContainers: [{name: one}, {name: two}], containers: [{name: app}]}
  status:
    phase: Pending
    initContainerStatuses:
    - {name: one, state: {terminated: {exitCode: 0, reason: Completed}}}
    - {name: two, restartCount: 1, state: {terminated: {exitCode: 1, reason: Error}}}
    containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]
- metadata: {name: init-running, namespace: default}
  spec: {initContainers: [{name: side, restartPolicy: Always}, {name: one}], containers: [{name: app}]}
  status:
    phase: Pending
    initContainerStatuses:
    - {name: side, started: true, ready: true, restartCount: 4, state: {running: {}}}
    - {name: one, state: {running: {}}}
    containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]
- metadata: {name: init-signal, namespace: default}
  spec: {initContainers: [{name: one}], containers: [{name: app}]}
  status: {phase: Pending, initContainerStatuses: [{name: one, state: {terminated: {exitCode: 137, signal: 9}}}]}
- metadata: {name: new, namespace: default}
  spec: {initContainers: [{name: one}], containers: [{name: app}]}
  status: {phase: Pending}
- metadata: {name: sidecar, namespace: kube-system}
  spec: {initContainers: [{name: side, restartPolicy: Always}], containers: [{name: app}]}
  status:
    phase: Running
    initContainerStatuses: [{name: side, started: true, ready: true, restartCount: 1, state: {running: {}}}]
    containerStatuses: [{name: app, restartCount: 1, ready: true, state: {running: {}}}]
- metadata: {name: unready, namespace: default}
  spec: {containers: [{name: app}]}
  status: {phase: Running, containerStatuses: [{name: app, state: {running: {}}}]}
`

func refusals() status.Manifests {
	return status.Manifests{
		Dir:      "/etc/monopod",
		Problems: []status.Problem{{File: "/etc/monopod", Message: "cannot be read: permission denied; nothing is removed meanwhile"}},
		Files: []status.File{
			{Path: "/etc/monopod/a.yaml", Pods: []string{"default/crash"}},
			{Path: "/etc/monopod/b.yaml", Pods: []string{"default/done", "default/full"}, Held: true, Problems: []status.Problem{
				{File: "/etc/monopod/b.yaml", Line: 2, Column: 1, Field: "spec.hostPID", Message: "unknown field"},
				{File: "/etc/monopod/b.yaml", Line: 3, Column: 5, Field: "spec.containers[0].imag", Message: "unknown field"},
				{File: "/etc/monopod/b.yaml", Line: 4, Message: "deprecated", Warning: true},
			}},
			{Path: "/etc/monopod/c.yaml", Held: true, Pods: []string{"default/going"}},
			{Path: "/else/d.yaml", Problems: []status.Problem{{File: "/else/d.yaml", Field: "spec.x", Message: "has no effect", Warning: true}}},
		},
	}
}

func TestPs(t *testing.T) {
	up := status.Runtime{Up: true}
	down := status.Runtime{Endpoint: "unix:///run/containerd/containerd.sock", Error: "connect: connection refused", Since: now.Add(-12 * time.Second)}
	files := status.Manifests{Dir: "/m", Files: []status.File{{Path: "/m/web.yaml", Pods: []string{"default/web"}}}}
	rows := []struct {
		name      string
		pods      string
		manifests status.Manifests
		runtime   status.Runtime
		options   Options
	}{
		{"well", well, files, up, Options{}},
		{"wide", well, files, up, Options{Output: "wide"}},
		{"json", well, files, up, Options{Output: "json"}},
		{"yaml", well, files, up, Options{Output: "yaml"}},
		{"troubled", troubled, refusals(), down, Options{}},
		{"color", troubled, status.Manifests{}, up, Options{Color: true}},
		{"none", "", status.Manifests{Dir: "/etc/monopod"}, up, Options{}},
		{"none and no folder", "", status.Manifests{Dir: "/m", Problems: []status.Problem{{File: "/m", Message: "does not exist"}}}, status.Runtime{}, Options{}},
		{"none yaml", "", status.Manifests{}, up, Options{Output: "yaml"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			r.options.Socket = anAgent(t, r.pods, r.manifests, r.runtime)
			r.options.Now = now
			var out bytes.Buffer
			if err := Ps(t.Context(), &out, r.options); err != nil {
				t.Fatal(err)
			}
			golden(t, out.String())
		})
	}
}

func TestPsJSONIsTheListOfTheEndpoint(t *testing.T) {
	socket := anAgent(t, well, status.Manifests{}, status.Runtime{Up: true})
	given, err := client.Get(t.Context(), socket, "/pods")
	if err != nil {
		t.Fatal(err)
	}
	var printed, compact bytes.Buffer
	if err := Ps(t.Context(), &printed, Options{Source: client.Source{Socket: socket}, Output: "json"}); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, printed.Bytes()); err != nil || compact.String() != strings.TrimSpace(string(given)) {
		t.Errorf("printed %s, %v\nwant %s", compact.String(), err, given)
	}
}

func TestPsSaysWhyItCannotAsk(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	other := filepath.Join(dir, "other")
	l, err = net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.NotFoundHandler())

	rows := []struct{ name, socket, output, want string }{
		{"nothing there", dir + "/none", "", "no monopod answers on " + dir + "/none: is `monopod run` running? (no such file or directory)"},
		{"nobody listens", stale, "", "no monopod answers on " + stale + ": is `monopod run` running? (connection refused)"},
		{"somebody else", other, "json", "GET /pods from " + other + ": 404 Not Found: 404 page not found"},
		{"no such output", other, "xml", `output "xml" is not one of wide, json, yaml`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Ps(t.Context(), &out, Options{Source: client.Source{Socket: r.socket}, Output: r.output})
			if err == nil || err.Error() != r.want {
				t.Errorf("Ps = %v\nwant %s", err, r.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

func TestASocketForRootOnlyIsSaid(t *testing.T) {
	err := client.Unreachable("/run/monopod.sock", client.AnswerTimeout, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})
	if want := "the socket /run/monopod.sock is for root only: permission denied"; err.Error() != want {
		t.Errorf("said %q, want %q", err, want)
	}
}

// One agent that never accepts, and one that stops in the middle of its answer.
func TestAnAgentThatHangsIsNotWaitedFor(t *testing.T) {
	const timeout = 100 * time.Millisecond
	silent := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	half := filepath.Join(t.TempDir(), "s")
	l, err = net.Listen("unix", half)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"items":`))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	for _, socket := range []string{silent, half} {
		_, err = client.GetWithin(t.Context(), timeout, socket, "/pods")
		if want := "no answer from " + socket + " within 100ms: is the monopod there stuck?"; err == nil || err.Error() != want {
			t.Errorf("said %v, want %s", err, want)
		}
	}
}

func TestColorsAreForTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	rows := []struct {
		name string
		f    *os.File
		env  map[string]string
		want bool
	}{
		{"terminal", terminal, map[string]string{"TERM": "xterm"}, true},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, false},
		{"a terminal that knows none", terminal, map[string]string{"TERM": "dumb"}, false},
		{"file", file, nil, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := Colored(r.f, func(key string) string { return r.env[key] }); got != r.want {
				t.Errorf("Colored = %v, want %v", got, r.want)
			}
		})
	}
}
