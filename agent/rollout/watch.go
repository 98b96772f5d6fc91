package rollout

import (
	"fmt"
	"time"

	"monopod/agent/update"
)

// Watch is how far the watch over a version on trial is. The zero Watch has seen nothing. Only
// what the version did counts: time passes for it from look to look, and only while it may run.
type Watch struct {
	Spent time.Duration // that it ran and was not ready

	isReady  bool          // it was, when it was looked at last
	ready    time.Duration // so far
	restarts int32         // until it was ready
	looked   time.Time
	passes   bool // time has passed for it since then
}

// Outcome is what a look at a version on trial comes to.
type Outcome int

const (
	Watching Outcome = iota
	Healthy          // the version is the one that later ones may go back to
	RollBack         // the former version is to come back, once that is on disk
	Overdue          // it comes back though that is not: the disk did not take it in time
)

var outcomeNames = [...]string{"watching", "healthy", "rolls back", "overdue"}

func (o Outcome) String() string { return outcomeNames[o] }

// Sight is what matters of a version that is looked at, beside its health.
type Sight struct {
	Now    time.Time
	Limits update.Limits
	Blind  bool          // nothing can be seen of it: the runtime does not answer, or the machine goes down
	Late   time.Duration // how late the end of a container may be seen
}

// watchEvery is how often a version is looked at for which time passes: for how long nothing
// could be seen of it is not to count.
const watchEvery = time.Second

// Look goes on with the watch. It returns why the version is to go, and when to look again if
// nothing of its health changes; zero: never.
func (w Watch) Look(s Sight, h update.Health) (next Watch, o Outcome, why string, again time.Time) {
	w = w.until(s.Now)
	soon := s.Now.Add(watchEvery)
	switch {
	case s.Limits.Within == 0 || h.Seen && h.Succeeded:
		return w, Healthy, "", again
	case !h.Seen:
		return w, Watching, "", again
	case s.Blind:
		return w, Watching, "", soon
	case h.Failed:
		return w, RollBack, "it has failed", again
	case h.Excused || h.Waits:
		return w.saw(h), Watching, "", again
	}
	w.passes = true
	switch {
	case !w.isReady && !h.Ready:
		if w.Spent >= s.Limits.Within {
			return w, RollBack, fmt.Sprintf("it was not ready within %s", s.Limits.Within), again
		}
		return w, Watching, "", earlier(soon, s.Now.Add(s.Limits.Within-w.Spent))
	case !w.isReady:
		w.isReady, w.ready, w.restarts = true, 0, h.Restarts
	case h.Restarts > w.restarts:
		return w, RollBack, fmt.Sprintf("it was ready, and a container restarted within %s", s.Limits.Stable), again
	case !h.Ready:
		return w, RollBack, fmt.Sprintf("it was ready, and did not stay so for %s", s.Limits.Stable), again
	}
	proven := s.Limits.Stable + s.Late
	if w.ready >= proven {
		return w, Healthy, "", again
	}
	return w, Watching, "", earlier(soon, s.Now.Add(proven-w.ready))
}

// until lets the time since the last look pass.
func (w Watch) until(now time.Time) Watch {
	since := max(now.Sub(w.looked), 0)
	switch {
	case !w.passes:
	case w.isReady:
		w.ready += since
	default:
		w.Spent += since
	}
	w.looked, w.passes = now, false
	return w
}

// saw takes over what is no fault of the version, as soon as it is known: what its owner or
// the agent restarts begins with its whole time, and what waits must be ready again.
func (w Watch) saw(h update.Health) Watch {
	if h.Excused {
		return Watch{looked: w.looked}
	}
	if h.Waits {
		w.isReady, w.passes = false, false
	}
	return w
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
