package worker

import (
	"time"

	"monopod/agent/backoff"
	"monopod/agent/plan"
	"monopod/agent/saidonce"
)

// failureLog says which failures of syncs, or of one action, are logged: not the one that was logged last, and others
// with a back-off, as a trouble may have several faces that come in turn. What the status of the
// pod says is always the last one. The zero value has logged nothing.
type failureLog struct {
	said  saidonce.Error
	count int
	again time.Time // when the next may be logged
	last  time.Time // that a sync failed
}

// A failure that comes after syncs have not failed for forgotten is logged like the first one.
const (
	mostSilence = 5 * time.Minute
	forgotten   = 2 * mostSilence
)

// isNews reports whether a failure is to be logged, and takes it for logged then.
func (l *failureLog) isNews(err error, now time.Time) bool {
	if now.Sub(l.last) > forgotten {
		*l = failureLog{}
	}
	l.last = now
	if now.Before(l.again) || !l.said.IsNew(err) {
		return false
	}
	l.count++
	l.again = now.Add(backoff.Between(plan.RetryFirst, mostSilence, l.count))
	return true
}
