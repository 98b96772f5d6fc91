package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/hook"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/saidonce"
	"monopod/cri"
)

var (
	errExited   = errors.New("the container has exited")
	errReplaced = errors.New("the stop of the whole pod replaces it")
)

// stop is the stop of one container, which runs in the background: a hook or a
// process may take the whole grace period.
type stop struct {
	whole  bool
	until  time.Time // the end of its first grace period
	cancel context.CancelCauseFunc
	done   chan struct{}

	// Written before done is closed.
	err    error
	hooked bool // the preStop hook need not run again

	// The worker's, after it.
	tries int
	retry time.Time // zero: not set yet
}

// stops are the container stops that run or are to be retried. The worker's
// goroutine owns the map.
type stops struct {
	*pod
	hooks *hooks
	all   map[string]*stop // by container id
	said  saidonce.Errors  // by container id: of stops that failed
}

// start starts the stops of one step. Their ends wake the worker.
func (x *stops) start(s *plan.Facts, step []plan.Action) {
	old := map[string]*stop{}
	for _, a := range step {
		was := x.all[a.ID]
		st := &stop{whole: a.Whole, until: time.Now().Add(a.Grace), done: make(chan struct{})}
		if was != nil {
			was.cancel(errReplaced)
			st.tries, old[a.ID] = was.tries, was
			if was.whole == a.Whole {
				st.until = was.until
			}
		}
		x.all[a.ID] = st
	}
	for _, a := range step {
		st := x.all[a.ID]
		var behind []*stop
		for _, id := range a.Behind {
			if first := x.all[id]; first != nil {
				behind = append(behind, first)
			}
		}
		firm, release := x.detached()
		ctx, cancel := context.WithCancelCause(firm)
		hook := x.hooks.preStop(s, a)
		level := slog.LevelDebug // another try
		if old[a.ID] == nil {
			x.RecordKilling(a)
		}
		if old[a.ID] == nil && !x.remakes {
			level = slog.LevelInfo
		}
		x.Log.Log(ctx, level, a.Do.Done(), "container", a.Name, "reason", a.Reason, "grace", a.Grace)
		about := x.About(a.UID, a.Name)
		st.cancel = cancel // from here on it ends by itself
		x.background.Go(func() {
			defer x.Wake()
			defer close(st.done)
			defer release()
			defer cancel(nil)
			defer x.caught(&st.err, a.Do.Noun(), a.Name)
			if was := old[a.ID]; was != nil {
				<-was.done
				st.hooked = was.hooked
			}
			x.run(ctx, st, a, about, hook, behind)
		})
	}
}

// run stops a container. The grace period covers everything: whole seconds
// of the hook and of waiting for others are taken from it; the rest, at least
// two seconds, is for the process (kubelet: the same).
func (x *stops) run(ctx context.Context, st *stop, a plan.Action, about v1.ObjectReference, preStop func(context.Context) error, behind []*stop) {
	log := x.Log.With("container", a.Name)
	left := a.Grace
	if preStop != nil && !st.hooked {
		start := time.Now()
		within, cancel := context.WithTimeout(ctx, left)
		err := preStop(within)
		cancel()
		if st.hooked = ctx.Err() == nil; st.hooked && err != nil {
			log.Warn("preStop hook failed; stopping the container anyway", "err", err, "output", hook.Output(err))
			x.Events.Record(about, v1.EventTypeWarning, "FailedPreStopHook", message.Fixed("PreStopHook failed"))
		}
		left -= time.Since(start).Truncate(time.Second)
	}
	start := time.Now()
	awaitAll(ctx, behind, left)
	left -= time.Since(start).Truncate(time.Second)
	if ctx.Err() == nil {
		left = max(left, plan.MinGrace)
		kills := time.AfterFunc(left, func() { x.kills.Add(1) })
		st.err = Gone(x.Cri.StopContainer(ctx, a.ID, left))
		if !kills.Stop() {
			x.kills.Add(-1)
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errExited):
		st.err = nil
		x.said.IsNew(a.ID, nil)
	case st.err == nil:
		x.said.IsNew(a.ID, nil)
		st.err = cause
	case cri.Unavailable(st.err):
		x.Watch.Wake(st.err)
	default:
		if x.said.IsNew(a.ID, st.err) {
			log.Error("container stop failed; retrying", "err", st.err)
		}
		x.Events.Record(about, v1.EventTypeWarning, "FailedKillPod", message.Of("error killing pod: %s", message.Private(st.err.Error())))
	}
}

// awaitAll waits until all stops have ended, at most atMost.
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

// states returns the states of the stops. One that has ended counts as failed:
// if it succeeded, the observation that follows sees no live container.
func (x *stops) states() map[string]plan.Stopping {
	now, out := time.Now(), map[string]plan.Stopping{}
	for id, st := range x.all {
		select {
		case <-st.done:
		default:
			out[id] = plan.Stopping{Whole: st.whole}
			continue
		}
		if st.retry.IsZero() {
			st.tries++
			st.retry = now.Add(plan.RetryIn(st.tries))
		}
		if now.Before(st.retry) {
			out[id] = plan.Stopping{Whole: st.whole, Retry: st.retry, Late: now.After(st.until)}
		}
	}
	return out
}

// forget cancels and forgets the stops of containers that are not alive.
func (x *stops) forget(alive map[string]bool) {
	for id, st := range x.all {
		if alive[id] {
			continue
		}
		st.cancel(errExited)
		select {
		case <-st.done:
			delete(x.all, id)
			x.said.IsNew(id, nil)
		default:
		}
	}
}

// dropUnstarted drops the stops whose goroutines a panic kept from starting.
func (x *stops) dropUnstarted() {
	for id, st := range x.all {
		if st.cancel == nil {
			close(st.done)
			delete(x.all, id)
			x.said.IsNew(id, nil)
		}
	}
}
