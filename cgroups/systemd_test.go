package cgroups

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// silentBus is a D-Bus that takes connections and says nothing.
func silentBus(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var taken []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken = append(taken, c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, c := range taken {
			c.Close()
		}
	})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
}

// onBus is systemd on the D-Bus alone, whatever the machine has.
func onBus() *bus {
	b := newBus()
	b.dial = dbus.NewSystemConnectionContext
	return b
}

// within fails if a call takes so long that it must hang.
func within(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
		return nil
	}
}

func TestSystemdThatDoesNotAnswerIsAnError(t *testing.T) {
	silentBus(t)
	b := onBus()
	b.wait = 50 * time.Millisecond
	for what, do := range map[string]func() error{
		"start": func() error { return b.start(t.Context(), "/a.slice") },
		"set":   func() error { return b.set(t.Context(), "/a.slice", Resources{Shares: 2}, true) },
		"stop":  func() error { return b.stop(t.Context(), "/a.slice") },
	} {
		if err := within(t, what, do); err == nil || !strings.Contains(err.Error(), "no answer from systemd within 50ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The end of the agent ends a call that waits, and who waits for its turn.
func TestAWaitForSystemdCanBeCancelled(t *testing.T) {
	silentBus(t)
	b := onBus()
	ctx, cancel := context.WithCancel(t.Context())
	both := make(chan error, 2)
	for range 2 {
		go func() { both <- b.start(ctx, "/a.slice") }()
	}
	cancel()
	for range 2 {
		if err := within(t, "start", func() error { return <-both }); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}

// While systemd hangs over the levels, the weight of the pods can be set, and what is
// asked of the manager is answered.
func TestNothingWaitsBehindAHangingSystemd(t *testing.T) {
	silentBus(t)
	m := &Manager{names: Names{Root: "/", Driver: Systemd}, tree: &tree{}, units: onBus(), turn: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan error, 1)
	go func() { hangs <- m.Refresh(ctx) }()
	for len(m.turn) == 0 {
		runtime.Gosched()
	}
	if err := within(t, "SetBurstable", func() error { return m.SetBurstable(t.Context(), 600) }); err != nil {
		t.Error(err)
	}
	within(t, "Pods", func() error { m.Pods(); return nil })
	cancel()
	if err := within(t, "Refresh", func() error { return <-hangs }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
