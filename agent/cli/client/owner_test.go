package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cli/clitest"
	"monopod/agent/message"
	"monopod/agent/server"
	"monopod/agent/status"
)

// owner serves two pods, and reports as stopped what is asked to stop; asked is what was.
func owner(t *testing.T, refuses error) (socket string, asked *[]string) {
	t.Helper()
	store, asked := clitest.Store(t, t.TempDir()), &[]string{}
	set := func(name, reason string, phase v1.PodPhase) {
		p := named("default", name, "n1", "a")
		p.Status.Reason, p.Status.Phase = reason, phase
		store.SetPod("default/"+name, &p)
	}
	set("web-n1", "", v1.PodRunning)
	set("db-n1", "", v1.PodRunning)
	request := func(what string, do func(name string)) server.Request {
		kind := server.OfPod
		if what == "hold" {
			kind = server.OfPodOrNode
		}
		return kind(what, func(_ context.Context, pod types.NamespacedName, q url.Values) error {
			*asked = append(*asked, strings.TrimSpace(what+" "+pod.Name+" "+q.Encode()))
			if refuses == nil {
				do(pod.Name)
			}
			return refuses
		})
	}
	return clitest.Serve(t, server.Config{Store: store, Requests: []server.Request{
		request("stop", func(name string) { set(name, status.ReasonStopped, v1.PodPending) }),
		request("hold", func(string) {}), request("start", func(string) {}),
	}}), asked
}

func TestStopWaitsUntilAllAreStopped(t *testing.T) {
	socket, asked := owner(t, nil)
	var out bytes.Buffer
	err := Stop(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"db", "web"}}, Out: &out})
	if err != nil || out.String() != "pod default/db is stopped\npod default/web is stopped\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if !slices.Equal(*asked, []string{"stop db-n1", "stop web-n1"}) {
		t.Errorf("asked %v", *asked)
	}
	err = Start(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"db"}}, Timeout: time.Second, Out: io.Discard})
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("start of a pod that stays stopped: %v", err)
	}
}

// All pods stop as in a shutdown: each wave once the one before has stopped. One that is
// being removed is waited for, and one that the agent refuses to stop keeps none from that.
func TestPodsStopInTheOrderOfAShutdown(t *testing.T) {
	store, asked := clitest.Store(t, t.TempDir()), []string{}
	pods := map[string]v1.Pod{}
	for _, name := range []string{"cache-n1", "db-n1", "leaves-n1", "proxy-n1", "web-n1"} {
		p := named("default", name, "n1", "a")
		p.Status.Phase = v1.PodRunning
		pods[name] = p
	}
	with := func(name string, change func(*v1.Pod)) {
		p := pods[name]
		change(&p)
		pods[name] = p
	}
	with("web-n1", func(p *v1.Pod) { p.Annotations = map[string]string{"monopod.start-after": "db"} })
	with("proxy-n1", func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	with("leaves-n1", func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })
	for name, p := range pods {
		store.SetPod("default/"+name, &p)
	}
	stop := server.OfPod("stop", func(_ context.Context, pod types.NamespacedName, _ url.Values) error {
		running := 0
		for name := range pods {
			if p, ok := store.Pod("default/" + name); ok && p.Status.Phase == v1.PodRunning {
				running++
			}
		}
		asked = append(asked, fmt.Sprint(pod.Name, " of ", running))
		switch pod.Name {
		case "cache-n1":
			return &status.Refusal{Why: "not now"}
		case "leaves-n1":
			time.AfterFunc(50*time.Millisecond, func() { store.RemovePod("default/leaves-n1") })
			return &status.Refusal{Why: "it is being removed"}
		}
		time.AfterFunc(50*time.Millisecond, func() {
			p := pods[pod.Name]
			p.Status.Reason, p.Status.Phase = status.ReasonStopped, v1.PodPending
			store.SetPod("default/"+pod.Name, &p)
		})
		return nil
	})
	socket := clitest.Serve(t, server.Config{Store: store, Requests: []server.Request{stop}})
	var out bytes.Buffer
	err := Stop(t.Context(), Request{Socket: socket, Out: &out})
	if err == nil || err.Error() != "not now" {
		t.Errorf("error %v", err)
	}
	if want := []string{"cache-n1 of 5", "leaves-n1 of 5", "web-n1 of 5", "db-n1 of 3", "proxy-n1 of 2"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if want := "pod default/leaves is stopped\npod default/web is stopped\npod default/db is stopped\npod default/proxy is stopped\n"; out.String() != want {
		t.Errorf("said %q", out.String())
	}
}

// removing serves web, which runs, and proxy, which stops behind it. What is asked of web is
// done; then change tells what becomes of it.
func removing(t *testing.T, change func(*status.Store)) (socket string, store *status.Store) {
	t.Helper()
	store = clitest.Store(t, t.TempDir())
	store.SetManifests(status.Manifests{Dir: "/m"})
	set := func(name, reason string, phase v1.PodPhase) {
		p := named("default", name, "n1", "a")
		p.Status.Reason, p.Status.Phase = reason, phase
		if name == "proxy-n1" {
			p.Spec.PriorityClassName = "system-node-critical"
		}
		store.SetPod("default/"+name, &p)
	}
	set("web-n1", "", v1.PodPending)
	set("proxy-n1", "", v1.PodRunning)
	request := func(_ context.Context, pod types.NamespacedName, _ url.Values) error {
		if pod.Name == "web-n1" {
			change(store)
			return nil
		}
		set(pod.Name, status.ReasonStopped, v1.PodPending)
		return nil
	}
	return clitest.Serve(t, server.Config{Store: store, Requests: []server.Request{server.OfPod("stop", request), server.OfPod("start", request)}}), store
}

// within is a context that is far longer than the wait.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A pod whose manifest is removed while it stops is stopped, and those behind it stop, too.
func TestAPodThatGoesWhileItStopsIsStopped(t *testing.T) {
	gone := func(store *status.Store) { store.RemovePod("default/web-n1") }
	for name, change := range map[string]func(*status.Store){
		"at once": gone,
		"later":   func(store *status.Store) { time.AfterFunc(100*time.Millisecond, func() { gone(store) }) },
		"after it was seen to leave": func(store *status.Store) {
			p := named("default", "web-n1", "n1", "a")
			p.DeletionTimestamp = new(metav1.Now())
			store.SetPod("default/web-n1", &p)
			time.AfterFunc(waitEvery+100*time.Millisecond, func() { gone(store) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket, store := removing(t, change)
			var out bytes.Buffer
			err := Stop(within(t), Request{Socket: socket, Out: &out})
			if err != nil || out.String() != "pod default/web is stopped\npod default/proxy is stopped\n" {
				t.Errorf("%v, said %q", err, out.String())
			}
			if p, ok := store.Pod("default/proxy-n1"); !ok || p.Status.Reason != status.ReasonStopped {
				t.Error("proxy still runs")
			}
		})
	}
}

// A pod whose manifest is removed while it is to start never starts.
func TestAPodThatGoesDoesNotStart(t *testing.T) {
	socket, _ := removing(t, func(store *status.Store) { store.RemovePod("default/web-n1") })
	err := Start(within(t), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard})
	if err == nil || err.Error() != "pod default/web is not started and will not be: it was removed meanwhile" {
		t.Error(err)
	}
}

// An agent that has just started does not report all pods yet: none of them counts as gone.
func TestAPodThatANewAgentDoesNotReportYetIsNotGone(t *testing.T) {
	socket, _ := removing(t, func(store *status.Store) {
		store.SetManifests(status.Manifests{})
		store.RemovePod("default/web-n1")
	})
	err := Stop(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Timeout: 5 * waitEvery, Out: io.Discard})
	if !errors.Is(err, ErrTimeout) || err.Error() != "pod default/web is not stopped within 1.5s: the agent does not report it" {
		t.Error(err)
	}
}

// A wait ends when it is cancelled, and one that lasts has said for what it is.
func TestAWaitForAPodSaysWhatItWaitsFor(t *testing.T) {
	socket, _ := removing(t, func(*status.Store) {})
	ctx, cancel := context.WithCancel(within(t))
	var said bytes.Buffer
	err := Stop(ctx, Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard,
		Err: writer(func(b []byte) { said.Write(b); cancel() })})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(said.String(), "monopod: waiting until pod default/web is stopped") {
		t.Errorf("%v, said %q", err, said.String())
	}
}

// writer is called with what is written.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestHoldIsOfPodsOrOfTheNode(t *testing.T) {
	socket, asked := owner(t, nil)
	q := url.Values{"for": {"2h"}, "reason": {"an audit"}}
	noErr := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	noErr(Hold(t.Context(), Request{Socket: socket, Node: true, Query: q, Out: io.Discard}))
	noErr(Hold(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard}))
	if !slices.Equal(*asked, []string{"hold  for=2h&reason=an+audit", "hold web-n1"}) {
		t.Errorf("asked %q", *asked)
	}
}

// Who holds what is held already reads which hold that ends.
func TestASecondHoldSaysWhatItReplaces(t *testing.T) {
	p := named("default", "web-n1", "n1", "a")
	store := clitest.Store(t, t.TempDir(), &p)
	socket := clitest.Serve(t, server.Config{Store: store, Requests: []server.Request{
		server.OfPodOrNode("hold", func(context.Context, types.NamespacedName, url.Values) error { return nil }),
	}, Held: func(string) message.Text { return message.Fixed("held: an audit until 2026-01-02T05:04:05Z") }})
	var out bytes.Buffer
	err := Hold(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: &out})
	if err != nil || out.String() != "pod default/web is held, in place of: held: an audit until 2026-01-02T05:04:05Z\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	out.Reset()
	store.SetNode(&v1.Node{})
	err = Hold(t.Context(), Request{Socket: socket, Node: true, Out: &out})
	if err != nil || out.String() != "the node is held, in place of: held: an audit until 2026-01-02T05:04:05Z\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestARefusedStopIsAnError(t *testing.T) {
	socket, _ := owner(t, &status.Refusal{Why: "pod default/web-n1 is being removed"})
	err := Stop(t.Context(), Request{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard})
	if err == nil || err.Error() != "pod default/web-n1 is being removed" {
		t.Error(err)
	}
	if err := Stop(t.Context(), Request{Socket: "/nowhere", Out: io.Discard}); !errors.Is(err, ErrDown) {
		t.Error(err)
	}
}

func TestWaitFailsAtOnceForAStoppedPod(t *testing.T) {
	p := named("default", "web-n1", "n1", "a")
	p.Status = v1.PodStatus{Phase: v1.PodPending, Reason: status.ReasonStopped, Message: "stopped by request"}
	for _, name := range []string{"ready", "running", "completed"} {
		if met, never := (outcome{name: name}).of(&p); met || never != "it is stopped by request" {
			t.Errorf("%s: %v, %q", name, met, never)
		}
	}
}

// A pod that is started runs once its containers do: while they are made it has the phase Running,
// and those that ran before the stop may still be there.
func TestStartWaitsForTheContainers(t *testing.T) {
	pod := func(reason, id string, state v1.ContainerState, last v1.ContainerState) *v1.Pod {
		p := named("default", "web-n1", "n1", "a")
		p.Status = v1.PodStatus{Phase: v1.PodRunning, Reason: reason, ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", ContainerID: id, State: state, LastTerminationState: last}}}
		return &p
	}
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	waits := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	none := v1.ContainerState{}
	stopped, stopping := pod(status.ReasonStopped, "x://1", waits(status.ReasonStopped), ended), pod(status.ReasonStopped, "x://1", runs, none)
	for _, row := range []struct {
		what        string
		before, now *v1.Pod
		want        bool
	}{
		{"it is still stopped", stopped, stopped, false},
		{"its container is being made", stopped, pod("", "x://1", waits("ContainerCreating"), ended), false},
		{"its container runs", stopped, pod("", "x://2", runs, ended), true},
		{"its container has ended since", stopped, pod("", "x://2", ended, ended), true},
		{"its container crashes since", stopped, pod("", "x://2", waits("CrashLoopBackOff"), ended), true},
		{"the container that is being stopped runs yet", stopping, pod("", "x://1", runs, none), false},
		{"the container that was being stopped has ended", stopping, pod("", "x://1", ended, none), false},
		{"the next one runs", stopping, pod("", "x://2", runs, ended), true},
		{"it was not stopped", pod("", "x://1", runs, none), pod("", "x://1", runs, none), true},
	} {
		if got := hasStarted(row.before, row.now); got != row.want {
			t.Errorf("%s: %v", row.what, got)
		}
	}
}
