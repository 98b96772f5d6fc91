package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/cli/clitest"
	"monopod/agent/server"
)

// An agent that does not answer within --timeout, as its disk hangs, is late and no refusal. How
// long it could have had does not count.
func TestAnAgentThatDoesNotAnswerInTimeIsLate(t *testing.T) {
	const timeout = 300 * time.Millisecond
	store := clitest.Store(t, t.TempDir())
	for _, name := range []string{"web-n1", "db-n1"} {
		p := named("default", name, "n1", "a")
		p.Status.Phase = v1.PodRunning
		store.SetPod("default/"+name, &p)
	}
	hangs := func(ctx context.Context, _ types.NamespacedName, _ url.Values) error { <-ctx.Done(); return ctx.Err() }
	socket := clitest.Serve(t, server.Config{Store: store, Requests: []server.Request{server.OfPod("stop", hangs), server.OfPod("start", hangs)}})
	silent := silentSocket(t)
	for name, ask := range map[string]func() error{
		"stop":               func() error { return Stop(within(t), Request{Socket: socket, Timeout: timeout, Out: io.Discard}) },
		"start":              func() error { return Start(within(t), Request{Socket: socket, Timeout: timeout, Out: io.Discard}) },
		"stop, no answer":    func() error { return Stop(within(t), Request{Socket: silent, Timeout: timeout, Out: io.Discard}) },
		"restart, no answer": func() error { return Restart(within(t), Request{Socket: silent, Timeout: timeout, Out: io.Discard}) },
		"wait, no answer": func() error {
			var said bytes.Buffer
			err := Wait(within(t), WaitOptions{Socket: silent, Choice: Choice{Names: []string{"web"}}, For: "ready", Timeout: timeout, Out: io.Discard, Err: &said})
			if said.Len() > 0 {
				t.Errorf("also said %s", &said)
			}
			return err
		},
	} {
		err := ask()
		if !errors.Is(err, ErrTimeout) || strings.Contains(err.Error(), "within 5s") || strings.Contains(err.Error(), "within 25s") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// silentSocket is the socket of an agent that accepts no connection.
func silentSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path
}
