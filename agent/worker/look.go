package worker

import (
	"time"

	"monopod/agent/plan"
)

// look is when a worker looks at its pod again: at once, or when something wakes it, and at a time
// at the latest. A look that is deaf to wakes always has a time, because retryAt alone makes one.
// The zero value waits for a wake.
type look struct {
	again bool
	at    time.Time // zero: no time
	deaf  bool      // until then only an update or a request counts
}

// lookAgain looks at once.
func lookAgain() look { return look{again: true} }

// lookAt looks when something wakes the worker, at t at the latest; zero: no time.
func lookAt(t time.Time) look { return look{at: t} }

// retryAt looks at t. Calls that failed may have caused events, which do not shorten the
// wait; an update and a request do.
func retryAt(t time.Time) look { return look{at: t, deaf: true} }

// spinLimit is how many passes may run in a row without a pause.
const spinLimit = 20

// alarm waits between the passes of a worker, whose goroutine alone uses it.
type alarm struct {
	woken <-chan struct{} // something may have changed: events, relists, ends of tasks
	asked <-chan struct{} // a request or a changed object
	timer *time.Timer
	spins int // passes since the last pause
}

func newAlarm(woken, asked <-chan struct{}) *alarm {
	a := &alarm{woken: woken, asked: asked, timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

// wait returns when it is time for the next pass, or when updated is closed.
func (a *alarm) wait(updated <-chan struct{}, next look) {
	a.spins++
	if next.again && a.spins < spinLimit {
		return
	}
	if next.again {
		next = lookAt(time.Now().Add(plan.RetryMax / 10))
	}
	a.spins = 0
	if !next.at.IsZero() {
		a.timer.Reset(time.Until(next.at))
	}
	defer a.timer.Stop()
	woken := a.woken
	if next.deaf {
		woken = nil
	}
	select {
	case <-updated:
	case <-woken:
	case <-a.asked:
	case <-a.timer.C:
	}
}
