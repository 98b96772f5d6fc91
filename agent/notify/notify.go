// Package notify reports the agent's status to the service manager, systemd.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

const (
	// Within is how long the agent may be "activating". After it the agent is reported as ready
	// all the same, with a status that has what it waits for: a runtime that is down, or a folder
	// that is missing, is not cured by a unit that never starts.
	Within = 30 * time.Second
	// gather is the least time between two reports.
	gather = time.Second
)

// Notifier reports on one agent to one service manager. Run has a goroutine to itself; any
// goroutine may call Reloading.
type Notifier struct {
	Send    func(state string)     // to the service manager
	Every   time.Duration          // at most between two signs of life; 0: none are requested
	Started func() error           // nil once everything was observed
	Alive   func() bool            // the agent works: called for each sign of life
	Status  func() string          // one line
	Changes func() <-chan struct{} // signals that the line may have changed

	ready   atomic.Bool // it was reported
	started bool        // everything was observed
	sent    string      // the last status
}

// Sender returns the func that sends a state to the service manager that started this process, and
// how often it requests signs of life, a third of the time after which it ends the process.
// Without such a manager Sender returns nil.
func Sender(log *slog.Logger) (send func(state string), every time.Duration) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, 0
	}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("no signs of life for the service manager", "err", err)
	}
	return func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Debug("service manager not told", "err", err)
		}
	}, limit / 3
}

// Run reports the agent's status until ctx ends, which it reports, too.
func (n *Notifier) Run(ctx context.Context) {
	if n.Send == nil {
		return
	}
	var beats <-chan time.Time
	if n.Every > 0 {
		t := time.NewTicker(n.Every)
		defer t.Stop()
		beats = t.C
	}
	changes, late := n.Changes(), time.After(Within)
	look, armed := time.NewTimer(0), true
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			n.Send(daemon.SdNotifyStopping + "\nSTATUS=ends; its pods run on")
			return
		case <-beats:
			if n.Alive() {
				n.Send(daemon.SdNotifyWatchdog)
			}
		case <-late:
			n.report(true)
		case <-look.C:
			n.report(false)
			if armed = !n.started; armed {
				look.Reset(gather)
			}
		case <-changes:
			if !armed {
				armed = true
				look.Reset(gather)
			}
		}
	}
}

// report sends what has changed. late: the agent is ready even if it still waits for something.
func (n *Notifier) report(late bool) {
	var states []string
	line := n.Status()
	if !n.started {
		if err := n.Started(); err != nil {
			line = fmt.Sprintf("%s; %v", line, err)
		} else {
			n.started = true
		}
	}
	if (n.started || late) && !n.ready.Load() {
		n.ready.Store(true)
		states = append(states, daemon.SdNotifyReady)
	}
	line = strings.Join(strings.Fields(line), " ") // a line break would begin another field
	if line != n.sent {
		n.sent = line
		states = append(states, "STATUS="+line)
	}
	if len(states) > 0 {
		n.Send(strings.Join(states, "\n"))
	}
}

// Reloading reports that settings are read again, until done is called.
func (n *Notifier) Reloading() (done func()) {
	if n.Send == nil || !n.ready.Load() {
		return func() {}
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it cannot fail: the clock exists
	n.Send(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000))
	return func() { n.Send(daemon.SdNotifyReady) }
}
