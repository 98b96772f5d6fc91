package pleg

import (
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seen is a container's status as it was observed, with its times on the clock
// of this process: they compare with later times however the machine's clock is
// set in between.
type seen struct {
	*rt.ContainerStatus
	started, finished time.Time // zero: not known
	last              time.Time // when the container was observed last in this state
}

// next returns the status of another state that is observed now. A container that
// was running when it was observed last has not ended before.
func (was *seen) next(st *rt.ContainerStatus, now time.Time) *seen {
	s := &seen{ContainerStatus: st, started: passed(st.StartedAt, now), finished: passed(st.FinishedAt, now)}
	if was == nil || was.Id != st.Id {
		return s
	}
	if was.StartedAt == st.StartedAt {
		s.started = was.started
	}
	if st.FinishedAt != 0 && was.State == rt.ContainerState_CONTAINER_RUNNING && was.last.Sub(s.finished) > clockSlack {
		s.finished = was.last
	}
	return s
}

// clockSlack is how old a listing may be that shows a container as running.
const clockSlack = 2 * time.Second

// passed turns a CRI time, nanoseconds since 1970 or 0 for none, into a time of
// this process's clock. One in the future is now: the machine's clock was set back.
func passed(ns int64, now time.Time) time.Time {
	if ns == 0 {
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
