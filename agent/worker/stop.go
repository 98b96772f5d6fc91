package worker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/hook"
	"monopod/agent/plan"
	"monopod/cri"
)

var (
	errExited   = errors.New("the container has exited")
	errReplaced = errors.New("the whole pod is stopped now")
)

// stop is the stop of one container, which goes on beside the worker: a hook or
// a program may take as long as its grace lasts.
type stop struct {
	whole  bool
	until  time.Time // the grace that it had at first is over then
	cancel context.CancelCauseFunc
	done   chan struct{}

	// Written before done is closed.
	err     error
	stopped bool // the preStop hook needs not be run again

	// The worker's, after it.
	tries int
	retry time.Time // zero: not looked at yet
}

// beginStops begins the stops of one step. Their ends wake the worker.
func (w *Worker) beginStops(s *plan.Facts, step []plan.Action) {
	old := map[string]*stop{}
	for _, a := range step {
		was := w.stops[a.ID]
		st := &stop{whole: a.Whole, until: time.Now().Add(a.Grace), done: make(chan struct{})}
		if was != nil {
			was.cancel(errReplaced)
			st.tries, old[a.ID] = was.tries, was
			if was.whole == a.Whole {
				st.until = was.until
			}
		}
		w.stops[a.ID] = st
	}
	for _, a := range step {
		st := w.stops[a.ID]
		var behind []*stop
		for _, id := range a.Behind {
			if first := w.stops[id]; first != nil {
				behind = append(behind, first)
			}
		}
		firm, release := w.detached()
		ctx, cancel := context.WithCancelCause(firm)
		hook := w.preStop(s, a)
		w.Log.Info(string(a.Do), "container", a.Name, "reason", a.Reason, "grace", a.Grace)
		if old[a.ID] == nil {
			w.recordKilling(a)
		}
		about := w.about(a.UID, a.Name)
		st.cancel = cancel // from here on it ends by itself
		w.background.Go(func() {
			defer w.Wake()
			defer close(st.done)
			defer release()
			defer cancel(nil)
			defer w.caught(&st.err, string(a.Do), a.Name)
			if was := old[a.ID]; was != nil {
				<-was.done
				st.stopped = was.stopped
			}
			w.carryOut(ctx, st, a, about, hook, behind)
		})
	}
}

// carryOut stops a container. The grace is for everything: whole seconds that
// the hook took, and then those of waiting for others, are taken from it; what
// is left, and two seconds at least, is for the program (kubelet: the same).
func (w *Worker) carryOut(ctx context.Context, st *stop, a plan.Action, about v1.ObjectReference, preStop func(context.Context) error, behind []*stop) {
	log := w.Log.With("container", a.Name)
	left := a.Grace
	if preStop != nil && !st.stopped {
		begun := time.Now()
		within, cancel := context.WithTimeout(ctx, left)
		err := preStop(within)
		cancel()
		if st.stopped = ctx.Err() == nil; st.stopped && err != nil {
			log.Warn("preStop hook has failed; the stop goes on", "err", err, "output", hook.Output(err))
			w.Events.Record(about, v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		}
		left -= time.Since(begun).Truncate(time.Second)
	}
	begun := time.Now()
	awaitAll(ctx, behind, left)
	left -= time.Since(begun).Truncate(time.Second)
	if ctx.Err() == nil {
		st.err = Gone(w.Cri.StopContainer(ctx, a.ID, max(left, plan.MinGrace)))
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errExited):
		st.err = nil
	case st.err == nil:
		st.err = cause
	case cri.Unavailable(st.err):
		w.Watch.Wake(st.err)
	default:
		log.Error("cannot stop container and tries again", "err", st.err)
		w.Events.Record(about, v1.EventTypeWarning, "FailedKillPod", "error killing pod: "+st.err.Error())
	}
}

// awaitAll waits until all have ended, at most so long.
func awaitAll(ctx context.Context, all []*stop, atMost time.Duration) {
	t := time.NewTimer(max(atMost, 0))
	defer t.Stop()
	for _, st := range all {
		select {
		case <-st.done:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stopping returns how the stops stand. One that has ended counts as one that
// went wrong: if it did not, its container is not seen alive any more by who
// looks after this.
func (w *Worker) stopping() map[string]plan.Stopping {
	now, out := time.Now(), map[string]plan.Stopping{}
	for id, st := range w.stops {
		select {
		case <-st.done:
		default:
			out[id] = plan.Stopping{Whole: st.whole}
			continue
		}
		if st.retry.IsZero() {
			st.retry = now.Add(min(plan.RetryFirst<<min(st.tries, 10), plan.RetryMax))
			st.tries++
		}
		if now.Before(st.retry) {
			out[id] = plan.Stopping{Whole: st.whole, Retry: st.retry, Late: now.After(st.until)}
		}
	}
	return out
}

// forgetStops ends and forgets the stops of containers that are not alive.
func (w *Worker) forgetStops(alive map[string]bool) {
	for id, st := range w.stops {
		if alive[id] {
			continue
		}
		st.cancel(errExited)
		select {
		case <-st.done:
			delete(w.stops, id)
		default:
		}
	}
}
