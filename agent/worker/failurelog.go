package worker

import (
	"time"

	"monopod/agent/backoff"
	"monopod/agent/plan"
	"monopod/agent/saidonce"
)

// failureLog decides which failures of syncs, or of one action, are logged: not the one that was
// logged last, and others with a back-off, as one trouble may show as several errors in turn. The
// pod's status always has the last one. The zero value has logged nothing.
type failureLog struct {
	logged saidonce.Error
	count  int
	again  time.Time // of the next failure that may be logged
	last   time.Time // of the last failure
}

// A failure that follows a time of forgotten without failures is logged like the first one.
const (
	mostSilence = 5 * time.Minute
	forgotten   = 2 * mostSilence
)

// isNews reports whether a failure is to be logged, and counts it as logged then.
func (l *failureLog) isNews(err error, now time.Time) bool {
	if now.Sub(l.last) > forgotten {
		*l = failureLog{}
	}
	l.last = now
	if now.Before(l.again) || !l.logged.IsNew(err) {
		return false
	}
	l.count++
	l.again = now.Add(backoff.Between(plan.RetryFirst, mostSilence, l.count))
	return true
}
