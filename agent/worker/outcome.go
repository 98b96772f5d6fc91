package worker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"monopod/agent/disk"
	"monopod/agent/image"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/podimages"
	"monopod/cri"
)

// collect records the tasks that ended after the pass that started them.
func (w *Worker) collect(ctx context.Context) {
	for _, k := range w.tasks.take() {
		if k.job.err != nil && (k.cancelled || errors.Is(k.job.err, errNewVersion)) {
			continue
		}
		if err := w.recordOutcome(ctx, k.facts, k.action, k.job.err, k.made); cri.Unavailable(err) {
			w.pod.shared.Watch.Wake(err)
		}
	}
}

// recordOutcome logs what was done and keeps failures. made is the sandbox that the
// action created. It returns the errors that end the pass.
func (w *Worker) recordOutcome(ctx context.Context, s *plan.Facts, a plan.Action, err error, made *madeSandbox) error {
	if errors.Is(err, podimages.ErrFetching) {
		return w.start.awaitImage(ctx, s, a)
	}
	starts := a.Do == plan.DoStartContainer || a.Do == plan.DoResumeContainer
	if starts && s.Pod != nil {
		w.fetches.Drop(s.Pod.Pod, a.Name)
	}
	switch {
	case err == nil:
		w.recordDone(s, a, made)
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) || cri.Unavailable(err) && !(w.pod.shared.Watch.Up() && w.away.Lasts(a.Key(), time.Now())):
		if a.Beside { // its end wakes the worker: no retry at once
			f := w.failures[a.Key()]
			f.Retry = time.Now().Add(time.Second)
			w.keepFailure(a, f)
		}
		return err
	}
	w.count(s, a, err)
	w.recordFailed(s, a, err)
	if starts || a.Beside {
		return nil
	}
	return errStop
}

// recordDone records that an action was carried out.
func (w *Worker) recordDone(s *plan.Facts, a plan.Action, made *madeSandbox) {
	w.count(s, a, nil)
	delete(w.away, a.Key())
	delete(w.tasks.hung, a.Key())
	log, level := w.logOf(a), slog.LevelInfo
	if w.pod.remakes || a.Do == plan.DoSetUp && (w.failures[a.Key()].Count > 0 || w.failed > 0) {
		level = slog.LevelDebug // another try
	}
	switch a.Do {
	case plan.DoCreateSandbox:
		log = log.With("attempt", a.Attempt)
		w.Observer.Know(made.id, made.status)
		w.keepFailure(a, w.failures[a.Key()].Remade(time.Now()))
		w.logRemakes(w.failures[a.Key()].Made > remakesLogged)
		if w.pod.current.Pod == s.Pod {
			w.start.made = made
		}
	case plan.DoAccept, plan.DoSetUp: // share their key with the sandbox, which is next
		if a.Beside {
			delete(w.failures, a.Key())
		}
	case plan.DoForget:
		delete(w.pod.known, a.UID)
		w.report.forget(a.UID)
		delete(w.failures, a.Key())
	case plan.DoStartContainer, plan.DoResumeContainer:
		log = log.With("attempt", a.Attempt)
		delete(w.failures, a.Key())
	case plan.DoStopSandbox, plan.DoRemoveSandbox, plan.DoRemoveContainer, plan.DoRemoveVolumes:
		w.keepFailure(a, w.failures[a.Key()].Done(time.Now()))
	case plan.DoResize:
		if c := w.checkpointOf(s, a.UID); c.Revision == a.Revision { // else of a former version
			w.pod.rememberOrWarn(c.Resized(a.Name, false), "that the container is resized")
		}
		w.Observer.Reread(a.ID)
		delete(w.failures, a.Key())
	default:
		delete(w.failures, a.Key())
	}
	if w.failures[a.Key()].Reason == "" { // else it is of the sandbox, which is next
		delete(w.refusals, a.Key())
	}
	log.Log(context.Background(), level, a.Do.Done(), "reason", a.Reason)
}

// remakesLogged is how many sandboxes that do not live are logged in full.
const remakesLogged = 3

// logRemakes logs once that sandboxes are made again and again. What follows from that is not
// logged until one lives.
func (w *Worker) logRemakes(now bool) {
	if now && !w.pod.remakes {
		w.pod.log.Warn("sandboxes do not live; they are made again, ever more rarely, which is logged at level debug", "reason", plan.SandboxUnusable)
	}
	w.pod.remakes = now
}

// keepFailure keeps how an action failed, for as long as its object exists.
func (w *Worker) keepFailure(a plan.Action, f plan.Failure) {
	f.Object = a.Object()
	w.failures[a.Key()] = f
}

// dropGone drops what was noted about sandboxes, containers and instances that are gone: no plan
// works on them again, and their removal ended the trouble.
func (w *Worker) dropGone(s *plan.Facts) {
	gone := func(object string) bool { return object != "" && !s.Has(object) }
	maps.DeleteFunc(w.failures, func(_ string, f plan.Failure) bool { return gone(f.Object) })
	maps.DeleteFunc(w.refusals, func(key string, _ *failureLog) bool {
		_, kept := w.failures[key]
		return !kept
	})
	maps.DeleteFunc(w.tasks.hung, func(key string, h hang) bool { return gone(h.object) && w.tasks.all[key] == nil })
}

// patientAfter is the number of failures in a row after which an action that runs beside the
// others is tried once a minute.
const patientAfter = 10

// recordFailed keeps a failure, with the time of the next try, and logs it once.
func (w *Worker) recordFailed(s *plan.Facts, a plan.Action, err error) {
	f, what, why := w.failures[a.Key()], a.Do.Noun(), plan.ExplainAction(a, err)
	f = f.Failed(time.Now(), why, cri.Busy(err), cri.NameReserved(err))
	f.IsDisk = disk.Unwritable(err)
	if a.Beside && f.Count > patientAfter { // nothing waits for it
		f.Retry = time.Now().Add(time.Minute)
	}
	var i *image.Error
	f.Image, f.Pulls = "", false
	if errors.As(err, &i) {
		f.Waiting, f.Retry = plan.ImageFailure(i)
		f.Image, f.Pulls = i.Words(), i.IsPull()
		what = "image pull"
	}
	w.keepFailure(a, f)
	if f.Reason == "" {
		return // the runtime still works on it, for a short time
	}
	if s.Pod != nil && plan.OfDesired(a.Key(), s.Pod) {
		w.pod.events.RecordFailure(s, a, f, err)
		if (i == nil || i.Reason != image.ImagePullBackOff) && !isUnanswered(err) { // else nothing was tried, or answered
			w.pod.shared.StartFailed(w.pod.key, a.Key(), f.Count, why.Reason, why.Message.String())
		}
	} else {
		w.pod.events.RecordWarning(a, f.Reason, f.Message)
	}
	if panics.In(err) == nil && w.isNewFailure(a, f) { // a panic is logged where it is caught
		w.logOf(a).Warn(what+" failed", "reason", f.Reason, "err", err)
	}
}

// isUnanswered reports whether the runtime did not say how a call ended: it is slow, or still works on
// an earlier one.
func isUnanswered(err error) bool { return errors.Is(err, context.DeadlineExceeded) || cri.Busy(err) }

// isNewFailure reports whether a failure of an action is to be logged, and counts it as logged.
func (w *Worker) isNewFailure(a plan.Action, f plan.Failure) bool {
	if w.refusals[a.Key()] == nil {
		w.refusals[a.Key()] = &failureLog{}
	}
	return w.refusals[a.Key()].isNews(errors.New(f.Message.String()), time.Now())
}

func (w *Worker) logOf(a plan.Action) *slog.Logger {
	if a.Name == "" {
		return w.pod.log
	}
	return w.pod.log.With("container", a.Name)
}
