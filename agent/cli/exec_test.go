package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/status"
	"monopod/agent/stream"
)

const execPods = `
- metadata: {name: web-n1, namespace: default, annotations: {kubectl.kubernetes.io/default-container: app}}
  spec: {nodeName: n1, containers: [{name: log}, {name: app}, {name: bad}], initContainers: [{name: prepare}]}
  status:
    phase: Running
    initContainerStatuses: [{name: prepare, containerID: "containerd://p", state: {terminated: {exitCode: 0, reason: Completed}}}]
    containerStatuses:
    - {name: log, containerID: "containerd://l", state: {running: {}}}
    - {name: app, containerID: "containerd://a", state: {running: {}}}
    - {name: bad, containerID: "containerd://b", state: {waiting: {reason: CrashLoopBackOff, message: "back-off 10s"}}}
- metadata: {name: new-n1, namespace: default}
  spec: {nodeName: n1, containers: [{name: app}]}
  status: {phase: Pending}
`

func TestExecAsksForTheRightContainer(t *testing.T) {
	refused := errors.New("asked")
	for _, r := range []struct {
		name string
		ExecOptions
		asked, err string
	}{
		{"the annotated one", ExecOptions{Pod: "web"}, "unix:///r.sock a [ls -l] stdin=false tty=false stderr=true", "container app of pod default/web: asked"},
		{"another, with input", ExecOptions{Pod: "default/web-n1", Container: "log", Streams: stream.Streams{In: strings.NewReader("")}},
			"unix:///r.sock l [ls -l] stdin=true tty=false stderr=true", "container log of pod default/web: asked"},
		{"with a terminal", ExecOptions{Pod: "web", Streams: stream.Streams{TTY: true}}, "unix:///r.sock a [ls -l] stdin=false tty=true stderr=false", "container app of pod default/web: asked"},
		{"at another runtime", ExecOptions{Pod: "web", Endpoint: "unix:///x"}, "unix:///x a [ls -l] stdin=false tty=false stderr=true", "container app of pod default/web: asked"},
		{"no pod", ExecOptions{Pod: "wib"}, "", `there is no pod "wib"; there is default/web`},
		{"no container", ExecOptions{Pod: "web", Container: "x"}, "", `pod default/web has no container "x": it has log, app, bad, prepare`},
		{"one that waits", ExecOptions{Pod: "web", Container: "bad"}, "", "container bad of pod default/web does not run: CrashLoopBackOff: back-off 10s"},
		{"one that has ended", ExecOptions{Pod: "web", Container: "prepare"}, "", "container prepare of pod default/web does not run: Completed: exit code 0"},
		{"one of which nothing is known", ExecOptions{Pod: "new"}, "", "container app of pod default/new does not run: Pending"},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, down %v", r.name, down), func(t *testing.T) {
				asked, o := "", r.ExecOptions
				want := r.asked
				if down {
					o.Source = client.Source{Socket: "/nowhere/s", Root: clitest.Previous(t, execPods, status.Manifests{})}
					want = strings.TrimPrefix(want, "unix:///r.sock") // nobody says where the runtime is
				} else {
					o.Source.Socket = clitest.Agent(t, execPods, status.Manifests{}, status.Runtime{Up: true, Endpoint: "unix:///r.sock"})
				}
				o.Command = []string{"ls", "-l"}
				o.Streams.Out, o.Streams.Err = io.Discard, io.Discard
				o.prepare = func(_ context.Context, endpoint string, q *rt.ExecRequest) (string, error) {
					asked = fmt.Sprintf("%s %s %v stdin=%v tty=%v stderr=%v", endpoint, q.ContainerId, q.Cmd, q.Stdin, q.Tty, q.Stderr)
					return "", refused
				}
				if _, err := Exec(t.Context(), o); clitest.Text(err) != r.err || asked != want {
					t.Errorf("asked %s, %v\nwant  %s, %s", asked, err, want, r.err)
				}
			})
		}
	}
}

// Where no agent runs, the runtime is asked that the last one was connected to.
func TestExecAsksTheRuntimeOfTheAgentThatEnded(t *testing.T) {
	root := t.TempDir()
	store := clitest.Store(t, filepath.Join(root, "status"), clitest.Pods(t, execPods)...)
	store.SetRuntime(status.Runtime{Up: true, Endpoint: "unix:///run/mine.sock"})
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := ""
	o := ExecOptions{Source: client.Source{Socket: "/nowhere/s", Root: root}, Pod: "web/log", Command: []string{"ls"}}
	o.prepare = func(_ context.Context, endpoint string, q *rt.ExecRequest) (string, error) {
		asked = endpoint + " " + q.ContainerId
		return "", errors.New("asked")
	}
	if _, err := Exec(t.Context(), o); asked != "unix:///run/mine.sock l" {
		t.Errorf("asked %q: %v", asked, err)
	}
}
