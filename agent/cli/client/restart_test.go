package client

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/clitest"
	"monopod/agent/server"
	"monopod/agent/status"
)

// restarter is an agent with a pod of two containers that restarts as it is told.
func restarter(t *testing.T, restart func(store *status.Store, pod, container string) (*status.Restart, error)) (socket string) {
	t.Helper()
	store := clitest.Store(t, t.TempDir())
	store.SetManifests(status.Manifests{Dir: "/m"})
	setPod(store, "old", "old", "")
	return clitest.Serve(t, server.Config{Store: store,
		Requests: []server.Request{server.Restart(func(_ context.Context, namespace, pod, container string) (*status.Restart, error) {
			return restart(store, namespace+"/"+pod, container)
		})}})
}

// setPod reports default/web-n1 with containers of these ids; waits is why the
// first does not run.
func setPod(store *status.Store, a, b, waits string) {
	p := named("default", "web-n1", "n1", "a", "b")
	p.UID = "u"
	state := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "a", ContainerID: "fake://" + a, State: state}, {Name: "b", ContainerID: "fake://" + b, State: state}}
	if waits != "" {
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: waits}}
	}
	store.SetPod("default/web-n1", &p)
}

func started(names ...string) *status.Restart {
	r := &status.Restart{Pod: "default/web-n1", UID: "u", Replaces: map[string]string{}}
	for _, name := range names {
		r.Replaces[name] = "old"
	}
	return r
}

func TestRestart(t *testing.T) {
	type answer = func(*status.Store, string, string) (*status.Restart, error)
	refuse := func(unknown bool, why string) answer {
		return func(*status.Store, string, string) (*status.Restart, error) {
			return nil, &status.Refusal{Unknown: unknown, Why: why}
		}
	}
	rows := []struct {
		name    string
		names   []string
		noWait  bool
		timeout time.Duration
		restart answer
		asked   string
		err     string
	}{
		{"a container", []string{"web/a"}, false, time.Minute, func(s *status.Store, _, _ string) (*status.Restart, error) {
			setPod(s, "new", "old", "")
			return started("a"), nil
		}, "default/web-n1 a", ""},
		{"a pod", []string{"default/web"}, false, time.Minute, func(s *status.Store, _, _ string) (*status.Restart, error) {
			setPod(s, "new", "new", "")
			return started("a", "b"), nil
		}, "default/web-n1 ", ""},
		{"without waiting", []string{"web", "web/b"}, true, 0, func(*status.Store, string, string) (*status.Restart, error) { return started("a", "b"), nil },
			"default/web-n1 default/web-n1 b", ""},
		{"too late", []string{"web"}, false, 400 * time.Millisecond, func(s *status.Store, _, _ string) (*status.Restart, error) {
			setPod(s, "new", "old", "")
			return started("a", "b"), nil
		}, "default/web-n1 ", "pod default/web does not run again within 400ms: container b does not run yet"},
		{"too late, and why", []string{"web/a"}, false, 400 * time.Millisecond, func(s *status.Store, _, _ string) (*status.Restart, error) {
			setPod(s, "old", "old", "CreateContainerError")
			return started("a"), nil
		}, "default/web-n1 a", "container a of pod default/web does not run again within 400ms: default/web: container a: CreateContainerError"},
		{"a refusal", []string{"web"}, false, 0, refuse(false, "pod default/web-n1 has ended"), "default/web-n1 ", "pod default/web-n1 has ended"},
		{"removed meanwhile", []string{"web"}, false, 0, func(s *status.Store, _, _ string) (*status.Restart, error) {
			s.RemovePod("default/web-n1")
			return started("a"), nil
		}, "default/web-n1 ", "pod default/web was removed or replaced meanwhile"},
		{"nothing, where a name is wrong", []string{"web", "wob"}, false, 0, refuse(true, ""), "", `there is no pod "wob"; there is default/web`},
		{"no such container", []string{"web/c"}, false, 0, refuse(true, ""), "", `pod default/web has no container "c": it has a, b`},
	}
	var printed bytes.Buffer
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var asked []string
			socket := restarter(t, func(s *status.Store, pod, container string) (*status.Restart, error) {
				asked = append(asked, pod+" "+container)
				return r.restart(s, pod, container)
			})
			printed.WriteString("# " + r.name + "\n")
			err := Restart(t.Context(), Request{Socket: socket, Choice: Choice{Names: r.names}, NoWait: r.noWait, Timeout: r.timeout, Out: &printed, Err: t.Output()})
			if clitest.Text(err) != r.err || strings.Join(asked, "") != r.asked {
				t.Errorf("asked for %q, %v\nwant %q, %s", asked, err, r.asked, r.err)
			}
			if late := strings.HasPrefix(r.name, "too late"); errors.Is(err, ErrTimeout) != late {
				t.Errorf("%v is late: %v", err, !late)
			}
		})
	}
	clitest.Golden(t, printed.String())
}

// Where the agent or its runtime is down, that is said, and what comes of it.
func TestRestartSaysWhatIsDown(t *testing.T) {
	err := Restart(t.Context(), Request{Socket: "/nowhere/s", Choice: Choice{Names: []string{"web"}}})
	if want := "the agent does not run, and nothing is restarted: no monopod answers on /nowhere/s: " + WhereToLook() + " (no such file or directory)"; clitest.Text(err) != want || !errors.Is(err, ErrDown) {
		t.Errorf("%v\nwant %s", err, want)
	}
	var store *status.Store
	socket := restarter(t, func(s *status.Store, _, _ string) (*status.Restart, error) {
		store = s
		return started("a"), nil
	})
	var said bytes.Buffer
	o := Request{Socket: socket, Choice: Choice{Names: []string{"web/a"}}, NoWait: true, Out: t.Output(), Err: &said}
	if err := Restart(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := "monopod: the runtime has not answered yet; the agent waits up to 20s for it before it gives the restart up\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	store.SetRuntime(status.Runtime{Up: true})
	said.Reset()
	if err := Restart(t.Context(), o); err != nil || said.Len() > 0 {
		t.Errorf("of one that answers: %v, said %q", err, said.String())
	}
}

// An agent that has just started again does not report all pods yet: the pod was not removed.
func TestARestartOutlastsAnAgentThatDoesNotReportThePodYet(t *testing.T) {
	socket := restarter(t, func(s *status.Store, _, _ string) (*status.Restart, error) {
		s.SetManifests(status.Manifests{})
		s.RemovePod("default/web-n1")
		time.AfterFunc(3*waitEvery, func() { setPod(s, "a2", "b2", "") })
		return started("a", "b"), nil
	})
	var out bytes.Buffer
	err := Restart(within(t), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: &out, Err: t.Output()})
	if err != nil || out.String() != "pod default/web is restarted\n" {
		t.Errorf("%v, said %q", err, out.String())
	}
}
