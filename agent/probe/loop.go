package probe

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/clip"
	"monopod/agent/message"
	"monopod/agent/panics"
)

// tries is how often in a row a probe that cannot be carried out is tried.
const tries = 3

// soonFirst is the first wait before a container that is not ready at first is probed again.
const soonFirst = time.Second

// loop runs one probe of one container on schedule. Its goroutine owns everything but due's first
// value.
type loop struct {
	set    *Set
	of     *followed
	kind   Kind
	probe  *v1.Probe
	period time.Duration
	log    *slog.Logger

	due  time.Time     // the next regular probe
	soon time.Duration // how long to wait at most before the next one; 0: until due

	good  bool // the last outcome
	row   int  // how often in a row
	state string
}

// newLoop returns a loop. spread: the first probe is made at some time within a period, so that an
// agent that finds many containers does not probe all at once.
func newLoop(s *Set, c *followed, kind Kind, pr *v1.Probe, spread bool) *loop {
	l := &loop{set: s, of: c, kind: kind, probe: pr, period: time.Duration(max(pr.PeriodSeconds, 1)) * time.Second,
		log: s.log.With("container", c.Container.Name, "probe", string(kind))}
	now, initial := time.Now(), time.Duration(pr.InitialDelaySeconds)*time.Second
	wait := min(c.Began.Add(initial).Sub(now), initial) // not longer, if the clock was set back
	if spread {
		wait = max(wait, rand.N(l.period))
	}
	l.due = now.Add(max(wait, 0))
	if kind == Readiness && !c.results.Ready && pr.SuccessThreshold <= 1 {
		l.soon = soonFirst
	}
	return l
}

func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(time.Until(l.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		over := false
		if err := panics.Contain(func() { over = l.probeOnce(ctx) }); err != nil {
			l.fault(err)
		}
		if over {
			return
		}
		timer.Reset(time.Until(l.next(time.Now())))
	}
}

// next returns when to probe again. As with a ticker, a probe that took longer than the period is
// followed by the next at once, and missed ones are dropped. A container that was never ready is
// probed more often at first, so that its pod becomes ready soon.
func (l *loop) next(now time.Time) time.Time {
	if !now.Before(l.due) {
		l.due = l.due.Add(l.period)
		if late := now.Sub(l.due); late > 0 {
			l.due = l.due.Add(late.Truncate(l.period))
		}
	}
	if early := now.Add(l.soon); l.soon > 0 && early.Before(l.due) {
		l.soon *= 2
		return early
	}
	l.soon = 0
	return l.due
}

// probeOnce probes once, records the result and reports whether that was the last time.
func (l *loop) probeOnce(ctx context.Context) (over bool) {
	var o Outcome
	var err error
	start := time.Now()
	for range tries {
		o, err = l.once(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return true
	}
	l.set.observe(l, found(o, err), time.Since(start))
	if err != nil {
		failure := message.Of("%s probe errored and resulted in unknown state: %s", message.Name(l.kind.Title()), message.Private(err.Error()))
		text := clip.Head(failure.String(), textLimit)
		l.logChange("errored", text)
		l.event("Unhealthy", failure)
		return l.set.note(l, false, false, text)
	}
	good, text := o.Result != Failure, ""
	switch o.Result {
	case Failure:
		failure := message.Of("%s probe failed: %s", message.Name(l.kind.Title()), message.Private(o.Output))
		text = clip.Head(failure.String(), textLimit)
		l.logChange("fails", text)
		l.event("Unhealthy", failure)
	case Warning:
		l.logChange("succeeds with a warning", clip.Head(o.Output, textLimit))
		l.event("ProbeWarning", message.Of("%s probe warning: %s", message.Name(l.kind.Title()), message.Private(o.Output)))
	default:
		l.logChange("succeeds", "")
	}
	if good != l.good {
		l.good, l.row = good, 0
	}
	l.row++
	if good {
		l.soon = 0
	}
	return l.set.note(l, good, l.row >= l.threshold(good), text)
}

// once runs the probe once. A panic is a probe that could not be carried out.
func (l *loop) once(ctx context.Context) (o Outcome, err error) {
	if fault := panics.Contain(func() { o, err = l.set.prober.probe(ctx, l.probe, &l.of.Target, l.set.exec) }); fault != nil {
		l.fault(fault)
		return o, fault
	}
	return o, err
}

// fault reports a panic.
func (l *loop) fault(err error) {
	if l.set.Fault != nil {
		l.set.Fault(&l.of.Target, err)
	}
}

func found(o Outcome, err error) Finding {
	switch {
	case err != nil:
		return Unknown
	case o.Result == Failure:
		return Failed
	}
	return Succeeded
}

func (l *loop) threshold(good bool) int {
	if good {
		return int(max(l.probe.SuccessThreshold, 1))
	}
	return int(max(l.probe.FailureThreshold, 1))
}

// event records an event of a probe that did not simply succeed.
func (l *loop) event(reason string, text message.Text) {
	if l.set.Event != nil {
		l.set.Event(&l.of.Target, reason, text)
	}
}

// logChange logs each change of state. A first success is not one.
func (l *loop) logChange(state, text string) {
	was := l.state
	l.state = state
	switch {
	case state == was || was == "" && state == "succeeds":
	case state == "succeeds":
		l.log.Info("probe " + state)
	case was == "" && l.kind != Liveness && state == "fails": // it is only starting
		l.log.Info("probe "+state, "reason", text)
	default:
		l.log.Warn("probe "+state, "reason", text)
	}
}
