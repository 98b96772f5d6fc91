// Package notify tells the service manager, systemd, how the agent is.
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
	// Within is how long the agent may be "activating". After it the agent is said to be
	// ready all the same, with a status that says what it waits for: a runtime that is
	// down, or a folder that is missing, is not cured by a unit that never starts.
	Within = 30 * time.Second
	// gather is the least time between two looks at what to tell.
	gather = time.Second
)

// Notifier tells one service manager of one agent. Run has a goroutine to itself;
// Reloading is for any.
type Notifier struct {
	Send    func(state string)     // to the service manager
	Every   time.Duration          // at most between two signs of life; 0: none are wanted
	Started func() error           // nil once everything was looked at
	Alive   func() bool            // the agent works: asked for each sign of life
	Status  func() string          // one line
	Changes func() <-chan struct{} // signals that the line may be another

	ready   atomic.Bool // it was told
	started bool        // everything was looked at
	told    string      // the last status
}

// Sender returns what sends a state to the service manager that started this
// process, and how often it wants signs of life, a third of the time after which
// it ends the process. Without such a manager Sender returns nil.
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

// Run tells how the agent is until ctx ends, which it tells, too.
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
			n.tell(true)
		case <-look.C:
			n.tell(false)
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

// tell sends what is not told yet. late: the agent is ready whatever it waits for.
func (n *Notifier) tell(late bool) {
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
	if line != n.told {
		n.told = line
		states = append(states, "STATUS="+line)
	}
	if len(states) > 0 {
		n.Send(strings.Join(states, "\n"))
	}
}

// Reloading tells that settings are read again, until done is called.
func (n *Notifier) Reloading() (done func()) {
	if n.Send == nil || !n.ready.Load() {
		return func() {}
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it cannot fail: the clock exists
	n.Send(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000))
	return func() { n.Send(daemon.SdNotifyReady) }
}
