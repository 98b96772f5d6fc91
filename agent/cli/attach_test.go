package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/status"
	"monopod/agent/stream"
	"monopod/cri"
	"monopod/cri/critest"
)

const attachPods = `
- metadata: {name: web-n1, namespace: default}
  spec: {nodeName: n1, restartPolicy: Always, containers: [{name: app, stdin: true, tty: true}, {name: in, stdin: true}, {name: out}, {name: bad, stdin: true}]}
  status:
    phase: Running
    containerStatuses:
    - {name: app, containerID: "containerd://a", state: {running: {}}}
    - {name: in, containerID: "containerd://i", state: {running: {}}}
    - {name: out, containerID: "containerd://o", state: {running: {}}}
    - {name: bad, containerID: "containerd://b", state: {waiting: {reason: CrashLoopBackOff}}}
`

func TestAttachTakesOnlyWhatTheManifestGives(t *testing.T) {
	const noTTY = "monopod: unable to use a TTY: container out of pod default/web did not allocate one (its manifest lacks tty: true)\n"
	for _, r := range []struct {
		name string
		AttachOptions
		asked, err, notes, after string
	}{
		{"output of a terminal", AttachOptions{Pod: "web"}, "a stdin=false tty=true stderr=false", "", "", ""},
		{"a terminal and input", AttachOptions{Pod: "web", Input: true, Terminal: true}, "a stdin=true tty=true stderr=false", "", "",
			"Session ended, resume using 'monopod attach web -c app -i -t' command when the pod is running"},
		{"the same, quietly", AttachOptions{Pod: "web", Input: true, Quiet: true}, "a stdin=true tty=true stderr=false", "", "", ""},
		{"input alone", AttachOptions{Pod: "web/in", Input: true}, "i stdin=true tty=false stderr=true", "", "", ""},
		{"output alone", AttachOptions{Pod: "web", Container: "out"}, "o stdin=false tty=false stderr=true", "", "", ""},
		{"a terminal that is not there", AttachOptions{Pod: "web", Container: "out", Terminal: true}, "o stdin=false tty=false stderr=true", "", noTTY, ""},
		{"input that is not there", AttachOptions{Pod: "web", Container: "out", Input: true}, "", "container out of pod default/web has no standard input: its manifest lacks stdin: true", "", ""},
		{"a container that waits", AttachOptions{Pod: "web", Container: "bad"}, "", "container bad of pod default/web does not run: CrashLoopBackOff", "", ""},
		{"no container", AttachOptions{Pod: "web", Container: "x"}, "", `pod default/web has no container "x": it has app, in, out, bad`, "", ""},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, down %v", r.name, down), func(t *testing.T) {
				o, asked := r.AttachOptions, ""
				o.Source.Socket = clitest.Agent(t, attachPods, status.Manifests{}, status.Runtime{Up: true, Endpoint: "unix:///r.sock"})
				if down {
					o.Source = client.Source{Socket: "/nowhere/s", Root: clitest.Previous(t, attachPods, status.Manifests{})}
				}
				o.prepare = func(_ context.Context, _ string, q *rt.AttachRequest) (string, error) {
					asked = fmt.Sprintf("%s stdin=%v tty=%v stderr=%v", q.ContainerId, q.Stdin, q.Tty, q.Stderr)
					return "", errors.New("asked")
				}
				var notes strings.Builder
				a, err := Attach(t.Context(), o, &notes)
				after := ""
				if err == nil {
					s := stream.Streams{}
					if o.Input {
						s.In = strings.NewReader("")
					}
					if _, err := a.run(t.Context(), s); err == nil || !strings.HasSuffix(err.Error(), ": asked") {
						t.Errorf("attach: %v", err)
					}
					after = a.resumption()
				}
				if clitest.Text(err) != r.err || asked != r.asked || notes.String() != r.notes || after != r.after {
					t.Errorf("asked %q, %v, notes %q, after %q", asked, err, notes.String(), after)
				}
			})
		}
	}
}

// CRI-O reports an error where the container ended before it had read all that was typed.
func TestAttachFailsOnlyWhileTheContainerRuns(t *testing.T) {
	runtime := critest.Start(t)
	runtime.AddImage("busybox")
	c, err := cri.Dial(runtime.Endpoint())
	noErr(t, err)
	defer c.Close()
	box := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u"}}
	sandbox, err := c.RunSandbox(t.Context(), box, "")
	noErr(t, err)
	start := func(name string, p critest.Program) string {
		t.Helper()
		runtime.Program(name, p)
		id, err := c.CreateContainer(t.Context(), sandbox, &rt.ContainerConfig{
			Metadata: &rt.ContainerMetadata{Name: name}, Image: &rt.ImageSpec{Image: "busybox"}}, box)
		noErr(t, err)
		noErr(t, c.StartContainer(t.Context(), id))
		return id
	}
	reset, closed := &stream.StartError{Text: "connection reset by peer"}, errors.New("write: broken pipe")
	for _, r := range []struct {
		name  string
		id    string
		err   error
		fails bool
	}{
		{"of a container that runs", start("runs", critest.Runs()), reset, true},
		{"of one that has ended", start("ended", critest.Exits(0)), reset, false},
		{"of one that the runtime sees end a moment later", start("ends", critest.ExitsAfter(endLook, 3)), reset, false},
		{"of one that is gone", "nosuch", reset, false},
		{"of this side", start("over", critest.Exits(0)), closed, true},
		{"no error", "nosuch", nil, false},
	} {
		a := &attachment{endpoint: runtime.Endpoint(), id: r.id}
		ctx, cancel := context.WithTimeout(t.Context(), 10*endLook) // what runs is not waited for longer
		defer cancel()
		if err := a.unlessEnded(ctx, r.err); (err != nil) != r.fails {
			t.Errorf("an error %s: %v, want one: %v", r.name, err, r.fails)
		}
	}
	runtime.Stop()
	if err := (&attachment{endpoint: runtime.Endpoint(), id: "nosuch"}).unlessEnded(t.Context(), reset); err != reset {
		t.Errorf("an error while the runtime does not answer: %v, want %v", err, reset)
	}
}

// What cannot be meant is refused before anything is asked.
func TestPortForwardAndCopyRefuseWhatCannotBeMeant(t *testing.T) {
	for line, want := range map[string]string{
		"port-forward web":                          "forward which pod's ports? As in `monopod port-forward web 8080:80`",
		"port-forward web 80:":                      `"80:" is no port: want [LOCAL:]REMOTE, such as 8080:80, 80 or :80`,
		"port-forward web 80 --address example.com": `--address: "example.com" is no address to listen on: want an IP address or localhost`,
		"attach":          "attach to which pod? As in `monopod attach -it web`",
		"cp web:/a":       "copy what to where? As in `monopod cp web:/etc/hosts hosts`",
		"cp web:/a db:/b": "one of the two must be a file of this machine",
		"cp ./web:/a b":   "one of the two must be a file of a pod, as in web:/etc/hosts",
		"cp web: b":       `"web:" names no file: want PATH or POD:PATH`,
	} {
		typedLine{line, nil, []string{want}, 2}.check(t)
	}
}
