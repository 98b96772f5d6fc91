package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/podlog"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

// now is when these tests take place.
var now = clitest.Now

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

// A version that does not fit the node is said once, by the pod that runs on.
const updating = `
- metadata: {name: web-node1, namespace: default, annotations: {monopod.problems: '["update waits: no cpu"]'}}
  spec: {nodeName: node1, containers: [{name: app}]}
  status: {phase: Running, containerStatuses: [{name: app, started: true, ready: true, state: {running: {}}}]}
`

var waitingUpdate = status.Manifests{Dir: "/m", Files: []status.File{{Path: "/m/web.yaml", Pods: []string{"default/web-node1"}, Held: true,
	Problems: []status.Problem{{File: "/m/web.yaml", Pod: "default/web-node1", Message: "no cpu", Waits: true}}}}}

func TestPs(t *testing.T) {
	up := status.Runtime{Up: true}
	down := status.Runtime{Endpoint: "unix:///run/containerd/containerd.sock", Error: "connect: connection refused", Since: now.Add(-12 * time.Second)}
	files := status.Manifests{Dir: "/m", Files: []status.File{{Path: "/m/web.yaml", Pods: []string{"default/web"}}}}
	at := now.Add(-time.Hour)
	became := status.Manifests{Dir: "/m", Leaving: []status.File{{Path: "/m/gone.yaml", Pods: []string{"default/late"}, Objects: []status.Object{{Kind: "ConfigMap", Name: "default/old"}}}}, Files: []status.File{
		{Path: "/m/app.yaml", State: status.Superseded, Since: at, Objects: []status.Object{
			{Kind: "ConfigMap", Name: "default/app", State: status.Accepted, Pods: []string{"default/web-node1"}},
			{Kind: "Secret", Name: "kube-system/key", State: status.Superseded, By: "/m/web.yaml", Reason: "metadata.name: /m/web.yaml gives it already", Line: 4, Column: 1}}},
		{Path: "/m/bad.yaml", State: status.Rejected, Since: at, SHA256: "b", Problems: []status.Problem{{File: "/m/bad.yaml", Line: 2, Column: 1, Message: "is no YAML"}}},
		{Path: "/m/new.yaml", Pods: []string{"default/late"}, State: status.Waiting, Since: at, Versions: []status.Version{{Pod: "default/late", State: status.Waiting, Since: at, Hash: "0123456789abcdef", Waiting: "0123456789abcdef", Reason: "asks for 8 cpus"}}},
		{Path: "/m/old.yaml", State: status.Superseded, Since: at, Versions: []status.Version{{Pod: "default/web-node1", State: status.Superseded, Since: at, Hash: "fedcba9876543210", By: "/m/web.yaml"}}},
		{Path: "/m/web.yaml", Pods: []string{"default/web-node1"}, State: status.Accepted, Since: at, Versions: []status.Version{{Pod: "default/web-node1", State: status.Accepted, Since: at, Hash: "0000000000000000"}}},
	}}
	rows := []struct {
		name      string
		pods      string
		manifests status.Manifests
		runtime   status.Runtime
		options   Options
	}{
		{"well", well, files, up, Options{}},
		{"wide", well, files, up, Options{Format: print.Format{Output: "wide"}}},
		{"wide at 80", well, files, up, Options{Format: print.Format{Output: "wide", Columns: 80}}},
		{"wide at 140", well, files, up, Options{Format: print.Format{Output: "wide", Columns: 140}}},
		{"files wide at 80", well, became, down, Options{Files: true, Format: print.Format{Output: "wide", Columns: 80}}},
		{"files wide at 140", well, became, down, Options{Files: true, Format: print.Format{Output: "wide", Columns: 140}}},
		{"json", well, files, up, Options{Format: print.Format{Output: "json"}}},
		{"yaml", well, files, up, Options{Format: print.Format{Output: "yaml"}}},
		{"troubled", troubled, refusals(), down, Options{}},
		{"an update waits", updating, waitingUpdate, up, Options{}},
		{"color", troubled, status.Manifests{}, up, Options{Format: print.Format{Color: true}}},
		{"none", "", status.Manifests{Dir: "/etc/monopod"}, up, Options{}},
		{"none and no folder", "", status.Manifests{Dir: "/m", Problems: []status.Problem{{File: "/m", Message: "does not exist"}}}, status.Runtime{}, Options{}},
		{"files", well, became, down, Options{Files: true}},
		{"files wide of a pod", well, became, down, Options{Files: true, Format: print.Format{Output: "wide"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"files as name", well, became, down, Options{Files: true, Format: print.Format{Output: "name"}}},
		{"files as json", well, became, down, Options{Files: true, Format: print.Format{Output: "json"}}},
		{"no files", well, status.Manifests{}, up, Options{Files: true}},
		{"none yaml", "", status.Manifests{}, up, Options{Format: print.Format{Output: "yaml"}}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			r.options.Socket = clitest.Agent(t, r.pods, r.manifests, r.runtime)
			var out bytes.Buffer
			r.options.Now, r.options.Columns, r.options.Err = now, cmp.Or(r.options.Columns, 500), &out
			if err := Ps(t.Context(), &out, r.options); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, out.String())
		})
	}
}

// What has no effect here, and stays so, is one line below the pods, however much it is; the wide
// list of files has all of it.
func TestNotesAreOneLineOfPs(t *testing.T) {
	var notes []status.Problem
	for i, kind := range []string{"Service", "ServiceAccount", "Role", "RoleBinding", "Ingress", "Pod"} {
		p := status.Problem{File: "/m/app.yaml", Line: 10 * (i + 1), Column: 7, Field: "kind", Message: kind + " is skipped: nothing here serves it", Warning: true, Note: true}
		if kind == "Pod" {
			p.Field, p.Message = "metadata.annotations[helm.sh/hook]", "Pod is skipped: a hook or test of helm's; without the annotation it runs here"
		}
		notes = append(notes, p)
	}
	wrong := status.Problem{File: "/m/app.yaml", Line: 3, Column: 5, Field: "spec.x", Message: "deprecated", Warning: true}
	at := now.Add(-time.Hour)
	folder := status.Problem{File: "/m", Message: "apps/, old/: not read, as by a kubelet: manifests stand in the folder itself", Warning: true, Note: true}
	manifests := status.Manifests{Dir: "/m", Problems: []status.Problem{folder}, Files: []status.File{
		{Path: "/m/app.yaml", Pods: []string{"default/web-node1"}, State: status.Accepted, Since: at, Problems: append([]status.Problem{wrong}, notes...),
			Versions: []status.Version{{Pod: "default/web-node1", State: status.Accepted, Since: at, Hash: "0123456789abcdef"}}},
		{Path: "/m/one.yaml", State: status.Accepted, Since: at, Problems: []status.Problem{{File: "/m/one.yaml", Line: 1, Column: 7, Field: "kind", Message: "Service is skipped: nothing here serves it", Warning: true, Note: true}}},
	}}
	const pod = `
- metadata: {name: web-node1, namespace: default, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: app}]}
  status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}
`
	socket := clitest.Agent(t, pod, manifests, status.Runtime{Up: true})
	for _, r := range []struct {
		name string
		o    Options
	}{
		{"ps", Options{}},
		{"ps of a pod", Options{Choice: client.Choice{Names: []string{"web"}}}},
		{"files", Options{Files: true}},
		{"files wide", Options{Files: true, Format: print.Format{Output: "wide"}}},
	} {
		for _, columns := range []int{80, 140} {
			t.Run(fmt.Sprintf("%s at %d", r.name, columns), func(t *testing.T) {
				var out bytes.Buffer
				o := r.o
				o.Socket, o.Now, o.Columns, o.Err = socket, now, columns, &out
				if err := Ps(t.Context(), &out, o); err != nil {
					t.Fatal(err)
				}
				clitest.Golden(t, out.String())
			})
		}
	}
}

// Why a container crashes is the last line that it wrote, where it left no termination message, as
// most leave none.
func TestACrashIsShownWithTheLastLineOfItsLog(t *testing.T) {
	const pods = `
- metadata: {name: mqtt-node1, namespace: default, uid: u1, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: broker}]}
  status:
    phase: Running
    containerStatuses:
    - {name: broker, containerID: "c://2", restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, containerID: "c://2"}}}
- metadata: {name: job-node1, namespace: default, uid: u2, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, initContainers: [{name: prepare}], containers: [{name: main}]}
  status:
    phase: Failed
    initContainerStatuses: [{name: prepare, containerID: "c://3", state: {terminated: {exitCode: 3, reason: Error, containerID: "c://3"}}}]
    containerStatuses: [{name: main, state: {waiting: {reason: PodInitializing}}}]
- metadata: {name: told-node1, namespace: default, uid: u3, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: main}]}
  status: {phase: Failed, containerStatuses: [{name: main, containerID: "c://4", state: {terminated: {exitCode: 3, reason: Error, message: no such table, containerID: "c://4"}}}]}
- metadata: {name: well-node1, namespace: default, uid: u4, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: main}]}
  status: {phase: Succeeded, containerStatuses: [{name: main, containerID: "c://5", state: {terminated: {exitCode: 0, reason: Completed, containerID: "c://5"}}}]}
- metadata: {name: killed-node1, namespace: default, uid: u5, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: main}]}
  status: {phase: Failed, containerStatuses: [{name: main, containerID: "c://6", state: {terminated: {exitCode: 137, reason: OOMKilled, containerID: "c://6"}}}]}
- metadata: {name: gone-node1, namespace: default, uid: u6, creationTimestamp: "2026-05-04T09:00:00Z"}
  spec: {nodeName: node1, containers: [{name: main}]}
  status: {phase: Failed, containerStatuses: [{name: main, containerID: "c://7", state: {terminated: {exitCode: 1, reason: Error, containerID: "c://7"}}}]}
`
	logs := t.TempDir()
	all := clitest.Pods(t, pods)
	for path, text := range map[string]string{
		"mqtt broker 3": "stdout F starting\nstderr F nc: invalid option -- 'k'\nstdout F",
		"job prepare 0": "stderr F cannot read /etc/app.json: " + strings.Repeat("long ", 60),
		"told main 0":   "stderr F another line",
		"well main 0":   "stdout F done",
		"killed main 0": "stdout F 80 % done",
	} {
		part := strings.Fields(path)
		k := slices.IndexFunc(all, func(p *v1.Pod) bool { return p.Name == part[0]+"-node1" })
		dir := podlog.Dir(logs, all[k], part[1])
		var lines string
		for line := range strings.Lines(text) {
			lines += "2026-05-04T11:00:00Z " + strings.TrimSuffix(line, "\n") + " \n"
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, part[2]+".log"), []byte(lines), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	store := clitest.Store(t, t.TempDir(), all...)
	store.SetRuntime(status.Runtime{Up: true})
	socket := clitest.Serve(t, server.Config{Store: store, PodLogs: logs})
	for columns, want := range map[int]string{
		80: `default/gone: container main: Error: exit code 1
default/job: init container prepare: Error: exit code 3: cannot read
  /etc/app.json: long long long long long long long long long long long long
  long long long long long long long long long long long long long long lon…
default/killed: container main: OOMKilled: exit code 137, out of memory
default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option
  -- 'k'): monopod logs mqtt -p
default/told: container main: Error: exit code 3: no such table
`,
		140: `default/gone: container main: Error: exit code 1
default/job: init container prepare: Error: exit code 3: cannot read /etc/app.json: long long long long long long long long long long long
  long long long long long long long long long long long long long long long lon…
default/killed: container main: OOMKilled: exit code 137, out of memory
default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option -- 'k'): monopod logs mqtt -p
default/told: container main: Error: exit code 3: no such table
`,
	} {
		var out, errs bytes.Buffer
		o := Options{Source: client.Source{Socket: socket}, Err: &errs, Format: print.Format{Now: now, Columns: columns}}
		if err := Ps(t.Context(), &out, o); err != nil {
			t.Fatal(err)
		}
		_, words, _ := strings.Cut(out.String()+errs.String(), "\n\n")
		if words != want {
			t.Errorf("at %d columns:\n%swant\n%s", columns, words, want)
		}
	}
	var out bytes.Buffer
	o := Options{Source: client.Source{Socket: socket}, Format: print.Format{Output: "json"}}
	if err := Ps(t.Context(), &out, o); err != nil || strings.Contains(out.String(), "invalid option") {
		t.Errorf("%v: a script reads a message that no status has:\n%s", err, out.String())
	}
}

func TestPsJSONIsTheListOfTheEndpoint(t *testing.T) {
	socket := clitest.Agent(t, well, status.Manifests{}, status.Runtime{Up: true})
	given, err := client.Get(t.Context(), socket, "/pods")
	if err != nil {
		t.Fatal(err)
	}
	var printed, compact bytes.Buffer
	if err := Ps(t.Context(), &printed, Options{Source: client.Source{Socket: socket}, Format: print.Format{Output: "json"}}); err != nil {
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
		{"nothing there", dir + "/none", "", "no monopod answers on " + dir + "/none: " + client.WhereToLook() + " (no such file or directory)"},
		{"a socket without an agent", stale, "", "no monopod answers on " + stale + ": " + client.WhereToLook() + " (connection refused)"},
		{"somebody else", other, "json", "GET /pods from " + other + ": 404 Not Found: 404 page not found"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Ps(t.Context(), &out, Options{Source: client.Source{Socket: r.socket}, Format: print.Format{Output: r.output}})
			if err == nil || err.Error() != r.want {
				t.Errorf("Ps = %v\nwant %s", err, r.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

func TestPsWithoutAnAgent(t *testing.T) {
	rows := []struct {
		name, pods string
		manifests  status.Manifests
		options    Options
	}{
		{"well", well, status.Manifests{Dir: "/m"}, Options{}},
		{"wide", well, status.Manifests{Dir: "/m"}, Options{Format: print.Format{Output: "wide"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"yaml", well, status.Manifests{Dir: "/m"}, Options{Format: print.Format{Output: "yaml"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"troubled", troubled, refusals(), Options{}},
		{"none", "", status.Manifests{Dir: "/m"}, Options{}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			root := clitest.Previous(t, r.pods, r.manifests)
			var out, errs bytes.Buffer
			o := r.options
			o.Source, o.Now, o.Err, o.Endpoint = client.Source{Socket: "/nowhere/monopod.sock", Root: root}, now, &errs, "/nowhere/runtime.sock"
			o.Columns = 500
			if err := Ps(t.Context(), &out, o); !errors.Is(err, client.ErrDown) {
				t.Errorf("err %v", err)
			}
			clitest.Golden(t, errs.String()+out.String())
		})
	}
}

func TestPsWithoutAnAgentTellsWhatIsHeld(t *testing.T) {
	root := clitest.Previous(t, "- metadata: {name: web-n, namespace: default}", status.Manifests{})
	record := `{"held": {"default/web-n": {"reason": "audit", "since": "2026-01-02T03:04:05Z"}}, "node": {"reason": "a visit", "since": "2026-01-02T03:04:05Z"}}`
	if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, words bytes.Buffer
	o := Options{Source: client.Source{Socket: "/nowhere/monopod.sock", Root: root}, Err: &words, Endpoint: "/nowhere/runtime.sock"}
	o.Now, o.Columns = time.Now(), 500
	if err := Ps(t.Context(), &out, o); !errors.Is(err, client.ErrDown) {
		t.Error(err)
	}
	for _, want := range []string{"node: held: a visit: no pod is started, updated or removed", "default/web-n: held: audit"} {
		if !strings.Contains(words.String()+out.String(), want) {
			t.Errorf("%q is missing from\n%s%s", want, &words, &out)
		}
	}
}
