package rollout

import (
	"fmt"
	"time"

	"monopod/agent/update"
)

// Watch is the progress of the watch over a version on trial. The zero Watch has observed nothing.
// Only what the version does counts: its time passes from look to look, and only while it may run.
type Watch struct {
	Spent time.Duration // the time in which it ran and was not ready

	isReady  bool          // it was ready at the last look
	ready    time.Duration // for how long so far
	restarts int32         // the restarts until it was ready
	looked   time.Time
	passes   bool // the time since then counts
}

// Outcome is the result of a look at a version on trial.
type Outcome int

const (
	Watching Outcome = iota
	Healthy          // later versions may be rolled back to this one
	RollBack         // the former version replaces it, once that is on disk
	Overdue          // the former version replaces it although the disk did not take the record in time
	Fit              // the former version, which had not worked when this one was offered, works by now
)

var outcomeNames = [...]string{"watching", "healthy", "rolls back", "overdue", "fit"}

func (o Outcome) String() string { return outcomeNames[o] }

// Sight is the input of a look at a version, besides its health.
type Sight struct {
	Now    time.Time
	Limits update.Limits
	Blind  bool          // it cannot be observed: the runtime does not answer, or the machine shuts down
	Late   time.Duration // how late the end of a container may be observed
	Lives  func() bool   // each container that the runtime lists as running has a process, which not all OCI runtimes show
}

// untold is how long a busy runtime may list a container as running after its end: 2.4 s were seen
// with containerd 2.4.2.
const untold = 10 * time.Second

// watchEvery is the time between two looks at a version whose time passes, since time in which it
// cannot be observed must not count.
const watchEvery = time.Second

// Look continues the watch. It returns why the version is to be rolled back, and when to look again
// if its health does not change; zero: never.
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
	if w.ready >= proven+untold || w.ready >= proven && s.Lives() {
		return w, Healthy, "", again
	}
	if w.ready >= proven {
		proven += untold
	}
	return w, Watching, "", earlier(soon, s.Now.Add(proven-w.ready))
}

// until counts the time since the last look.
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

// saw records what is not the fault of the version, as soon as it is known: after a restart by its
// owner or the agent it gets its whole time again, and after a wait it must become ready again.
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
