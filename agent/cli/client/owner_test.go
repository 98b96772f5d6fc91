package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cli/clitest"
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
		return server.Request{Node: what == "hold", Do: func(_ context.Context, pod types.NamespacedName, q url.Values) error {
			*asked = append(*asked, strings.TrimSpace(what+" "+pod.Name+" "+q.Encode()))
			if refuses == nil {
				do(pod.Name)
			}
			return refuses
		}}
	}
	return clitest.Serve(t, server.Config{Store: store, Owner: map[string]server.Request{
		"stop": request("stop", func(name string) { set(name, status.ReasonStopped, v1.PodPending) }),
		"hold": request("hold", func(string) {}), "start": request("start", func(string) {}),
	}}), asked
}

func TestStopWaitsUntilAllAreStopped(t *testing.T) {
	socket, asked := owner(t, nil)
	var out bytes.Buffer
	err := Stop(t.Context(), OwnerOptions{Socket: socket, Choice: Choice{Names: []string{"db", "web"}}, Out: &out})
	if err != nil || out.String() != "pod default/db is stopped\npod default/web is stopped\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if !slices.Equal(*asked, []string{"stop db-n1", "stop web-n1"}) {
		t.Errorf("asked %v", *asked)
	}
	err = Start(t.Context(), OwnerOptions{Socket: socket, Choice: Choice{Names: []string{"db"}}, Timeout: time.Second, Out: io.Discard})
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("start of a pod that stays stopped: %v", err)
	}
}

func TestHoldIsOfPodsOrOfTheNode(t *testing.T) {
	socket, asked := owner(t, nil)
	q := url.Values{"for": {"2h"}, "reason": {"an audit"}}
	noErr := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	noErr(Hold(t.Context(), OwnerOptions{Socket: socket, Node: true, Query: q, Out: io.Discard}))
	noErr(Hold(t.Context(), OwnerOptions{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard}))
	if !slices.Equal(*asked, []string{"hold  for=2h&reason=an+audit", "hold web-n1"}) {
		t.Errorf("asked %q", *asked)
	}
}

func TestARefusedStopIsAnError(t *testing.T) {
	socket, _ := owner(t, &status.Refusal{Why: "pod default/web-n1 is being removed"})
	err := Stop(t.Context(), OwnerOptions{Socket: socket, Choice: Choice{Names: []string{"web"}}, Out: io.Discard})
	if err == nil || err.Error() != "pod default/web-n1 is being removed" {
		t.Error(err)
	}
	if err := Stop(t.Context(), OwnerOptions{Socket: "/nowhere", Out: io.Discard}); !errors.Is(err, ErrDown) {
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
