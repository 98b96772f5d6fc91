package pleg

import (
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seen is an observed container status, with its times on the clock of this process: they can be
// compared with later times even if the machine's clock is set in between.
type seen struct {
	*rt.ContainerStatus
	started, finished time.Time // zero: not known
	last              time.Time // when the container was last observed in this state
	stale             bool      // something other than the state has changed
}

// next returns the status of another state that is observed now. The container had not ended at the
// time before: it was running then, or did not exist yet; zero: not known.
func (was *seen) next(st *rt.ContainerStatus, before, now time.Time) *seen {
	s := &seen{ContainerStatus: st}
	switch {
	case was != nil && was.StartedAt == st.StartedAt:
		s.started = was.started
	case was == nil:
		s.started = notBefore(before, passed(st.StartedAt, now))
	case was.State == rt.ContainerState_CONTAINER_CREATED:
		s.started = notBefore(was.last, passed(st.StartedAt, now))
	default:
		s.started = passed(st.StartedAt, now)
	}
	if was != nil && was.State == rt.ContainerState_CONTAINER_RUNNING {
		before = was.last
	}
	s.finished = notBefore(before, passed(st.FinishedAt, now))
	if s.finished.IsZero() && st.State == rt.ContainerState_CONTAINER_EXITED && !before.IsZero() {
		s.finished = now // the runtime does not know: CRI-O, if conmon was killed
	}
	return s
}

// clockSlack is how old a listing may be that has a container as running.
const clockSlack = 2 * time.Second

// notBefore returns the later of t and before. A zero t stays zero.
func notBefore(before, t time.Time) time.Time {
	if !t.IsZero() && before.Sub(t) > clockSlack {
		return before
	}
	return t
}

// passed converts a CRI time into a time of this process's clock. It is in nanoseconds since 1970,
// and 0 for none; CRI-O also has Go's zero time, of the year 1. A time in the future becomes now:
// the machine's clock was set back.
func passed(ns int64, now time.Time) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return now.Add(-max(now.Sub(time.Unix(0, ns)), 0))
}

// justEnded reports whether a container ended after born, when its observer was
// created. was is its status before, or nil.
func justEnded(was, now *seen, born time.Time) bool {
	if now.State != rt.ContainerState_CONTAINER_EXITED {
		return false
	}
	return was != nil && was.State != now.State || was == nil && !now.finished.Before(born)
}
