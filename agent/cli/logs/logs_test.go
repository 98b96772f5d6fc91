package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/podlog"
	"monopod/agent/status"
)

const loggedPods = `
- metadata: {namespace: default, name: web-node1, uid: u1, labels: {app: web}}
  spec: {nodeName: node1, initContainers: [{name: init}], containers: [{name: app}, {name: proxy}]}
  status:
    phase: Running
    initContainerStatuses: [{name: init, containerID: i0, state: {terminated: {exitCode: 0}}}]
    containerStatuses:
    - {name: app, containerID: c1, restartCount: 1, state: {running: {}}, lastState: {terminated: {containerID: c0, exitCode: 1}}}
    - {name: proxy, containerID: p0, state: {running: {}}}
- metadata: {namespace: default, name: job-node1, uid: u2, labels: {app: web, tier: job}, annotations: {kubectl.kubernetes.io/default-container: side}}
  spec: {nodeName: node1, restartPolicy: Never, containers: [{name: main}, {name: side}]}
  status:
    phase: Succeeded
    containerStatuses:
    - {name: main, containerID: m0, state: {terminated: {exitCode: 0}}}
    - {name: side, containerID: s0, state: {terminated: {exitCode: 0}}}
- metadata: {namespace: kube-system, name: dns-node1, uid: u3, labels: {app: dns}}
  spec: {nodeName: node1, containers: [{name: dns}]}
  status: {phase: Pending, containerStatuses: [{name: dns, state: {waiting: {reason: ImagePullBackOff}}}]}
`

// loggedFiles are the logs of those, "second stream text" a line.
var loggedFiles = map[string][]string{
	"default_web-node1_u1/init/0.log":                  {"1 stdout ready to go"},
	"default_web-node1_u1/app/0.log":                   {"2 stdout hello", "4 stderr no such file"},
	"default_web-node1_u1/app/1.log.20260504-120000":   {"6 stdout hello again"},
	"default_web-node1_u1/app/1.log":                   {"8 stdout GET /", "10 stderr 404"},
	"default_web-node1_u1/proxy/0.log":                 {"3 stdout proxy", "7 stdout up", "9 stdout GET /"},
	"default_job-node1_u2/main/0.log":                  {"5 stdout working", "11 stdout done"},
	"default_job-node1_u2/side/0.log":                  {"8 stdout beside"},
	"default_other-n_u9/main/0.log":                    {"1 stdout another's"},
	"default_web-node1_u0/app/0.log":                   {"1 stdout an earlier pod's"},
	"default_web-node1_u1/app/1.log.20260504-1200.bak": {"1 stdout no log"},
}

func logFolder(t *testing.T, files map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, lines := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			addLine(t, path, line)
		}
	}
	return dir
}

func addLine(t *testing.T, path, line string) {
	t.Helper()
	parts := strings.SplitN(line, " ", 3)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "2026-05-04T12:00:%02s.5Z %s F %s\n", parts[0], parts[1], parts[2])
}

func ptr[T any](v T) *T { return &v }

func TestLogs(t *testing.T) {
	socket := clitest.Agent(t, loggedPods, status.Manifests{}, status.Runtime{Up: true})
	podLogs := logFolder(t, loggedFiles)
	rows := []struct {
		name string
		o    Options
	}{
		{"the default container", Options{Pod: "web"}},
		{"an annotated default container", Options{Pod: "job"}},
		{"a container", Options{Pod: "default/web-node1", Containers: []string{"proxy"}}},
		{"a container behind its pod", Options{Pod: "web/proxy"}},
		{"a container named twice", Options{Pod: "web/proxy", Containers: []string{"app"}}},
		{"several containers", Options{Pod: "web", Containers: []string{"proxy", "app"}}},
		{"all containers", Options{Pod: "web", AllContainers: true}},
		{"all containers in colour", Options{Pod: "web", AllContainers: true, Color: true}},
		{"without prefix", Options{Pod: "web", AllContainers: true, Prefix: ptr(false)}},
		{"with prefix and time", Options{Pod: "job", Prefix: ptr(true), Timestamps: true}},
		{"the previous log", Options{Pod: "web", Containers: []string{"app"}, Previous: true}},
		{"the previous log followed", Options{Pod: "web", Containers: []string{"app"}, Previous: true, Follow: true}},
		{"no previous log", Options{Pod: "web", Containers: []string{"proxy"}, Previous: true}},
		{"previous logs of some", Options{Pod: "web", AllContainers: true, Previous: true}},
		{"the tail of each", Options{Pod: "web", AllContainers: true, Tail: ptr(int64(1))}},
		{"since", Options{Pod: "web", AllContainers: true, Since: time.Date(2026, 5, 4, 12, 0, 8, 0, time.UTC)}},
		{"by labels", Options{Selector: "app=web"}},
		{"a container by labels", Options{Selector: "app", Containers: []string{"main"}}},
		{"no such container by labels", Options{Selector: "app", Containers: []string{"what"}}},
		{"all pods with times", Options{All: true, Timestamps: true}},
		{"no such labels", Options{Selector: "app=wep"}},
		{"labels that are none", Options{Selector: "a==="}},
		{"one that waits", Options{Pod: "dns"}},
		{"one of several that waits", Options{Selector: "app"}},
		{"a name like another", Options{Pod: "wep"}},
		{"no such container", Options{Pod: "web", Containers: []string{"ap"}}},
		{"follow what has ended", Options{Pod: "job", AllContainers: true, Follow: true}},
		{"follow what has ended without a log", Options{Pod: "job", AllContainers: true, Follow: true, PodLogs: "/none"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			row.o.Socket = socket
			if row.o.PodLogs == "" {
				row.o.PodLogs = podLogs
			}
			clitest.Golden(t, printLogs(t, row.o))
		})
	}
}

func printLogs(t *testing.T, o Options) string {
	t.Helper()
	var out, notes bytes.Buffer
	o.Notes = &notes
	err := Print(t.Context(), &out, o)
	if notes.Len() > 0 {
		fmt.Fprintf(&out, "--- notes\n%s", notes.String())
	}
	if err != nil {
		fmt.Fprintf(&out, "--- error, usage %v\n%v\n", IsUsage(err), err)
	}
	return out.String()
}

// Without an agent, the pods are as the last one reported them.
func TestLogsWithoutAnAgent(t *testing.T) {
	root := t.TempDir()
	store := clitest.Store(t, filepath.Join(root, "status"), clitest.Pods(t, loggedPods)...)
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := Options{Source: client.Source{Socket: "/none/sock", Root: root}, Pod: "web/app", PodLogs: logFolder(t, loggedFiles)}
	got := printLogs(t, o)
	if !strings.HasPrefix(got, "hello again\nGET /\n404\n--- notes\nmonopod: the agent does not run (no process answers on /none/sock)") {
		t.Errorf("printed %s", got)
	}
	o.Root = ""
	if got := printLogs(t, o); !strings.HasPrefix(got, "--- error, usage false\nno monopod answers on /none/sock") {
		t.Errorf("without its folder: printed %s", got)
	}
}

// lines is written to and read from in lines.
func lines(t *testing.T) (io.Writer, func(want ...string)) {
	r, w := io.Pipe()
	t.Cleanup(func() { r.Close() })
	var text string
	return w, func(want ...string) {
		t.Helper()
		all := strings.Join(want, "\n") + "\n"
		b := make([]byte, 1024)
		for len(text) < len(all) {
			n, err := r.Read(b)
			text += string(b[:n])
			if err != nil {
				break
			}
		}
		if !strings.HasPrefix(text, all) {
			t.Fatalf("printed %q, want %q", text, all)
		}
		text = text[len(all):]
	}
}

// Following goes on over restarts, one line after the other, of each container.
func TestLogsFollow(t *testing.T) {
	socket := clitest.Agent(t, loggedPods, status.Manifests{}, status.Runtime{Up: true})
	for _, row := range []struct {
		name, prefix string
		o            Options
	}{
		{"one", "", Options{Pod: "web/app"}},
		{"several", "web/app   | ", Options{Pod: "web", Containers: []string{"app", "proxy"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := row.o
			o.Socket, o.PodLogs, o.Follow, o.Tail, o.Notes = socket, logFolder(t, loggedFiles), true, ptr(int64(1)), io.Discard
			out, want := lines(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- Print(ctx, out, o) }()
			if row.prefix != "" {
				want("web/proxy | GET /")
			}
			want(row.prefix + "404")
			app := podlog.Dir(o.PodLogs, &v1.Pod{ObjectMeta: podMeta("web-node1", "u1")}, "app")
			addLine(t, app+"/1.log", "12 stdout more")
			want(row.prefix + "more")
			addLine(t, app+"/2.log", "13 stdout restarted")
			want(row.prefix + "restarted")
			why := errors.New("interrupted")
			cancel(why)
			if err := <-done; !errors.Is(err, why) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// A closed output ends it.
func TestLogsToAClosedPipe(t *testing.T) {
	o := Options{Pod: "web", AllContainers: true, Follow: true, Notes: io.Discard, PodLogs: logFolder(t, loggedFiles)}
	o.Socket = clitest.Agent(t, loggedPods, status.Manifests{}, status.Runtime{Up: true})
	r, w := io.Pipe()
	r.Close()
	if err := Print(t.Context(), w, o); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended with %v", err)
	}
}

func TestOver(t *testing.T) {
	const spec = "initContainers: [{name: i}, {name: s, restartPolicy: Always}], containers: [{name: c}, {name: own, restartPolicy: Never}]"
	for _, row := range []struct {
		name, policy, status, container string
		want                            bool
	}{
		{"running", "Never", "containerStatuses: [{name: c, state: {running: {}}}]", "c", false},
		{"not reported", "Never", "", "c", false},
		{"ended, Never", "Never", "containerStatuses: [{name: c, state: {terminated: {exitCode: 1}}}]", "c", true},
		{"failed, OnFailure", "OnFailure", "containerStatuses: [{name: c, state: {terminated: {exitCode: 1}}}]", "c", false},
		{"succeeded, OnFailure", "OnFailure", "containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]", "c", true},
		{"succeeded, Always", "Always", "containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]", "c", false},
		{"succeeded, its own Never", "Always", "containerStatuses: [{name: own, state: {terminated: {exitCode: 1}}}]", "own", true},
		{"init succeeded", "Always", "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}]", "i", true},
		{"init failed", "Always", "initContainerStatuses: [{name: i, state: {terminated: {exitCode: 1}}}]", "i", false},
		{"sidecar ended", "Never", "initContainerStatuses: [{name: s, state: {terminated: {exitCode: 0}}}]", "s", false},
		{"pod failed", "Always", "phase: Failed, containerStatuses: [{name: c, state: {waiting: {}}}]", "c", true},
	} {
		var p v1.Pod
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{spec: {restartPolicy: %s, %s}, status: {%s}}", row.policy, spec, row.status), &p); err != nil {
			t.Fatal(err)
		}
		if got := over(&p, row.container); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func podMeta(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}
}
