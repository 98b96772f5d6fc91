package notify

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// agent is one whose notifier is tested in the time of a bubble.
type agent struct {
	n *Notifier
	*testing.T
	mu      sync.Mutex // of what follows: both goroutines use it
	sent    []string
	missing error
	line    string
	dead    bool
	changes chan struct{}
	end     func()
}

func run(t *testing.T, test func(a *agent)) { runEach(t, 20*time.Second, test) }

// runEach is run with another time between signs of life.
func runEach(t *testing.T, every time.Duration, test func(a *agent)) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{T: t, line: "1 pod", changes: make(chan struct{}, 1),
			missing: errors.New("the manifests have not been read yet")}
		a.n = &Notifier{Every: every, Send: func(s string) { a.set(func() { a.sent = append(a.sent, s) }) },
			Started: func() (err error) { a.set(func() { err = a.missing }); return err },
			Status:  func() (line string) { a.set(func() { line = a.line }); return line },
			Alive:   func() (alive bool) { a.set(func() { alive = !a.dead }); return alive }, Changes: func() <-chan struct{} { return a.changes }}
		ctx, cancel := context.WithCancel(t.Context())
		a.end = func() { cancel(); synctest.Wait() }
		go a.n.Run(ctx)
		test(a)
		a.end()
	})
}

// set changes or reads what both goroutines use.
func (a *agent) set(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// after lets time pass; what was sent before it is forgotten.
func (a *agent) after(d time.Duration) {
	synctest.Wait()
	a.set(func() { a.sent = nil })
	time.Sleep(d)
	synctest.Wait()
}

func (a *agent) tells(want ...string) {
	a.Helper()
	synctest.Wait()
	if !slices.Equal(a.sent, want) {
		a.Errorf("sent %q, want %q", a.sent, want)
	}
}

func TestReadyOnceEverythingWasLookedAt(t *testing.T) {
	run(t, func(a *agent) {
		a.tells("STATUS=1 pod; the manifests have not been read yet")
		a.set(func() { a.missing = nil })
		a.after(time.Second)
		a.tells("READY=1\nSTATUS=1 pod")
		a.after(10 * time.Second)
		a.tells()
	})
}

func TestReadyInTimeWhateverIsMissing(t *testing.T) {
	run(t, func(a *agent) {
		a.after(Within - 11*time.Second) // the first sign of life comes after it
		a.tells()
		a.after(11 * time.Second)
		a.tells("WATCHDOG=1", "READY=1")
		a.after(time.Second)
		a.tells()
		a.set(func() { a.missing = nil }) // and what was missing is told for as long
		a.after(time.Second)
		a.tells("STATUS=1 pod")
	})
}

func TestTheStatusIsToldWhenItChanges(t *testing.T) {
	runEach(t, 0, func(a *agent) {
		a.set(func() { a.missing = nil })
		a.after(5 * time.Second)
		a.set(func() { a.line = "2 pods:\nREADY=1" })
		a.changes <- struct{}{}
		a.tells()
		a.after(time.Second)
		a.tells("STATUS=2 pods: READY=1")
		a.changes <- struct{}{}
		a.after(5 * time.Second)
		a.tells()
	})
}

func TestALoopThatIsStuckGivesNoSignOfLife(t *testing.T) {
	run(t, func(a *agent) {
		a.set(func() { a.missing = nil })
		a.after(19 * time.Second)
		a.after(time.Second)
		a.tells("WATCHDOG=1")
		a.set(func() { a.dead = true })
		a.after(time.Minute)
		a.tells()
		a.set(func() { a.dead = false })
		a.after(20 * time.Second)
		a.tells("WATCHDOG=1")
	})
}

func TestTheEndIsTold(t *testing.T) {
	run(t, func(a *agent) {
		a.after(time.Second)
		a.end()
		a.tells("STOPPING=1\nSTATUS=ends; its pods run on")
	})
}

func TestAReloadIsToldOnceReady(t *testing.T) {
	run(t, func(a *agent) {
		a.after(time.Second)
		a.n.Reloading()()
		a.tells()
		a.set(func() { a.missing = nil })
		a.after(time.Second)
		a.set(func() { a.sent = nil })
		done := a.n.Reloading()
		const want = "RELOADING=1\nMONOTONIC_USEC="
		if len(a.sent) != 1 || !strings.HasPrefix(a.sent[0], want) || a.sent[0] == want+"0" {
			a.Errorf("sent %q", a.sent)
		}
		a.set(func() { a.sent = nil })
		done()
		a.tells("READY=1")
	})
}

func TestNoManagerIsToldNothing(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	send, _ := Sender(slog.New(slog.DiscardHandler))
	n := &Notifier{Send: send}
	n.Run(t.Context()) // does not wait
	n.Reloading()()
}

func TestTheManagerIsToldOnItsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "60000000")
	t.Setenv("WATCHDOG_PID", "")
	send, every := Sender(slog.New(slog.DiscardHandler))
	send("READY=1")
	b := make([]byte, 100)
	n, err := l.Read(b)
	if err != nil || string(b[:n]) != "READY=1" || every != 20*time.Second {
		t.Errorf("%q, each %s, %v", b[:n], every, err)
	}
}

func TestOneLineTellsHowThePodsAre(t *testing.T) {
	pod := func(phase v1.PodPhase) *v1.Pod {
		p := &v1.Pod{Status: v1.PodStatus{Phase: phase, ContainerStatuses: make([]v1.ContainerStatus, 2)}}
		if phase == v1.PodRunning {
			p.Status.ContainerStatuses[1].State.Running = &v1.ContainerStateRunning{}
		}
		return p
	}
	// After a reboot, and while its only container waits for its restart.
	restarting := pod("Running")
	restarting.Status.ContainerStatuses[1].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	refused := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed}}
	up := status.Runtime{Up: true}
	for _, r := range []struct {
		pods    []*v1.Pod
		runtime status.Runtime
		m       status.Manifests
		want    string
	}{
		{nil, up, status.Manifests{}, "0 pods"},
		{[]*v1.Pod{pod("Pending"), pod("Running"), pod("Running"), pod("Failed"), pod("Succeeded")}, up, status.Manifests{},
			"5 pods: 2 running, 1 waiting, 1 succeeded, 1 failed"},
		{[]*v1.Pod{pod("Running"), restarting}, up, status.Manifests{}, "2 pods: 1 running, 1 waiting"},
		{[]*v1.Pod{pod("Failed"), refused}, up, status.Manifests{}, "2 pods: 1 failed, 1 refused"},
		{[]*v1.Pod{pod("Running")}, status.Runtime{Error: "connection refused"},
			status.Manifests{Problems: []status.Problem{{}},
				Files: []status.File{{Problems: []status.Problem{{}, {Warning: true}}}}},
			"1 pod: 1 running; 2 problems in manifests, see monopod ps; runtime down: connection refused"},
	} {
		if got := Line(r.pods, r.runtime, r.m); got != r.want {
			t.Errorf("%q, want %q", got, r.want)
		}
	}
}
