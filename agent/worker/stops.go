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

// stop is the job that stops one container: a hook or the process may take the whole grace
// period.
type stop struct {
	job     *job
	whole   bool
	until   time.Time                   // the end of its first grace period
	before  *stop                       // the try before; nil: this is the first
	preStop func(context.Context) error // nil: there is no hook
	about   v1.ObjectReference
	hooked  bool // the preStop hook need not run again; written before the job ends

	// The worker's, after it.
	tries int
	retry time.Time // zero: not set yet
}

// stops are the container stops that run or are to be retried. The worker's
// goroutine owns the map.
type stops struct {
	pod    *pod
	hooks  *hooks
	all    map[string]*stop // by container id
	logged saidonce.Errors  // by container id: of stops that failed
}

// start starts the stops of one step. Their ends wake the worker.
func (x *stops) start(s *plan.Facts, step []plan.Action) {
	started := make([]*stop, len(step))
	for k, a := range step { // a panic here leaves the stops as they were
		started[k] = x.next(s, a)
	}
	for k, a := range step {
		x.all[a.ID] = started[k]
	}
	for k, a := range step {
		st, behind := started[k], x.those(a.Behind)
		stopIt := func(ctx context.Context) error { return x.run(ctx, st, a, behind) }
		x.pod.begin(st.job, a.Do.Noun(), a.Name, stopIt, x.pod.Wake)
	}
}

// next returns the stop of a container that is to start now, and cancels the one before.
func (x *stops) next(s *plan.Facts, a plan.Action) *stop {
	st := &stop{whole: a.Whole, until: time.Now().Add(a.Grace), before: x.all[a.ID],
		preStop: x.hooks.preStop(s, a), about: x.pod.events.About(a.UID, a.Name)}
	level := slog.LevelDebug // another try
	if st.before == nil {
		x.pod.events.RecordKilling(a)
	}
	if st.before == nil && !x.pod.remakes {
		level = slog.LevelInfo
	}
	x.pod.log.Log(x.pod.life, level, a.Do.Done(), "container", a.Name, "reason", a.Reason, "grace", a.Grace)
	if was := st.before; was != nil {
		was.job.cancel(errReplaced)
		st.tries = was.tries
		if was.whole == a.Whole {
			st.until = was.until
		}
	}
	st.job = x.pod.detachedJob()
	return st
}

// those returns the existing stops of these containers.
func (x *stops) those(ids []string) []*stop {
	var out []*stop
	for _, id := range ids {
		if st := x.all[id]; st != nil {
			out = append(out, st)
		}
	}
	return out
}

// run stops a container, once the try before has ended. The grace period covers everything: whole
// seconds of the hook and of waiting for others are taken from it; the rest, at least two seconds,
// is for the process (kubelet: the same).
func (x *stops) run(ctx context.Context, st *stop, a plan.Action, behind []*stop) error {
	if was := st.before; was != nil {
		<-was.job.done
		st.hooked, st.before = was.hooked, nil
	}
	left := a.Grace
	if st.preStop != nil && !st.hooked {
		left -= x.runHook(ctx, st, a, left)
	}
	start := time.Now()
	awaitAll(ctx, behind, left)
	left -= time.Since(start).Truncate(time.Second)
	left = max(left, plan.MinGrace)
	err := x.pod.shared.ContainerStops.Do(ctx, st.tries > 0, left, func() error { return x.call(ctx, a.ID, left) })
	return x.ended(ctx, st, a, err)
}

// call asks the runtime to stop a container.
func (x *stops) call(ctx context.Context, id string, grace time.Duration) error {
	kills := time.AfterFunc(grace, func() { x.pod.shared.kills.Add(1) })
	err := Gone(x.pod.shared.Cri.StopContainer(ctx, id, grace))
	if !kills.Stop() {
		x.pod.shared.kills.Add(-1)
	}
	return err
}

// runHook runs the preStop hook, within the grace period, and returns how much of that it took.
func (x *stops) runHook(ctx context.Context, st *stop, a plan.Action, grace time.Duration) time.Duration {
	start := time.Now()
	within, cancel := context.WithTimeout(ctx, grace)
	err := st.preStop(within)
	cancel()
	st.hooked = ctx.Err() == nil
	if st.hooked && err != nil {
		x.pod.log.Warn("preStop hook failed; stopping the container anyway", "container", a.Name, "err", err, "output", hook.Output(err))
		x.pod.shared.Events.Record(st.about, v1.EventTypeWarning, "FailedPreStopHook", message.Fixed("PreStopHook failed"))
	}
	return time.Since(start).Truncate(time.Second)
}

// ended returns the result of a stop whose last call returned err, and reports it.
func (x *stops) ended(ctx context.Context, st *stop, a plan.Action, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errExited):
		x.logged.IsNew(a.ID, nil)
		return nil
	case cause != nil: // the stop that replaces it has its own end
		return cause
	case err == nil:
		x.logged.IsNew(a.ID, nil)
		return nil
	case cri.Unavailable(err):
		x.pod.shared.Watch.Wake(err)
		return err
	}
	if x.logged.IsNew(a.ID, err) {
		x.pod.log.Error("container stop failed; retrying", "container", a.Name, "err", err)
	}
	x.pod.shared.Events.Record(st.about, v1.EventTypeWarning, "FailedKillPod", message.Of("error killing pod: %s", message.Private(err.Error())))
	return err
}

// awaitAll waits until all stops have ended, at most atMost.
func awaitAll(ctx context.Context, all []*stop, atMost time.Duration) {
	t := time.NewTimer(max(atMost, 0))
	defer t.Stop()
	for _, st := range all {
		select {
		case <-st.job.done:
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
		if !st.job.hasEnded() {
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
		st.job.cancel(errExited)
		if st.job.hasEnded() {
			delete(x.all, id)
			x.logged.IsNew(id, nil)
		}
	}
}
