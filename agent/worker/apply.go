package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/image"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/volume"
	"monopod/cri"
	"monopod/manifests/decode"
)

// LeaveIn is how long a call that changes the runtime may still run when the
// agent must end; a call that takes longer is left to the runtime, and the next
// agent observes its result.
const LeaveIn = 5 * time.Second

// Apply carries out a plan's steps, one after the other, the actions of each
// together. It ends at the first step with an error. A failed container start
// is no error: it is kept as a failure, and other containers start.
func (w *Worker) Apply(ctx context.Context, s *plan.Facts, steps [][]plan.Action) error {
	w.fetches.prefetch(ctx, s, steps)
	for _, step := range steps {
		step, wait := w.startBackground(s, step)
		if wait {
			return nil
		}
		if len(step) == 0 {
			continue
		}
		errs := make([]error, len(step))
		var all sync.WaitGroup
		for k := 1; k < len(step); k++ {
			if step[k].Do != plan.DoMarkKill { // these write one checkpoint, one after the other
				all.Go(func() { errs[k] = w.do(ctx, s, step[k]) })
			}
		}
		errs[0] = w.do(ctx, s, step[0])
		for k := 1; k < len(step); k++ {
			if step[k].Do == plan.DoMarkKill {
				errs[k] = w.do(ctx, s, step[k])
			}
		}
		all.Wait()
		var stop error
		for k, err := range errs {
			if err = w.recordOutcome(ctx, s, step[k], err); err != nil {
				stop = err
			}
		}
		if errors.Is(stop, errStop) {
			return nil
		}
		if stop != nil {
			return stop
		}
	}
	return nil
}

// errStop ends a plan after a failure that the next plan takes into account.
var errStop = errors.New("the plan ends here")

// do carries out one action.
func (w *Worker) do(ctx context.Context, s *plan.Facts, a plan.Action) (err error) {
	defer w.caught(&err, a.Do.Noun(), a.Name)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// An update interrupts only waits, not calls that change the runtime. These
	// are interrupted when the agent ends, see detached.
	firm, cancel := w.detached()
	defer cancel()
	switch a.Do {
	case plan.DoAccept:
		if err := w.takeOver(firm, s); err != nil {
			return err
		}
		return plan.Because("FailedCheckpoint", w.remember(w.checkpointOf(s, a.UID)))
	case plan.DoMarkRemoving:
		w.rememberOrWarn(w.checkpointOf(s, a.UID).Removing(metav1.Now(), w.Machine.Boot.Mark()), "that the pod is being stopped")
		return nil
	case plan.DoSaveActive:
		w.rememberOrWarn(w.checkpointOf(s, a.UID).WithActive(a.Active, s.Mark), "how long the pod has been active")
		return nil
	case plan.DoRecordResult:
		w.recordResult(s, a.Verdict)
		w.rememberOrWarn(w.checkpointOf(s, a.UID).WithResult(a.Verdict), "that the pod is being stopped")
		return nil
	case plan.DoMark:
		return w.remember(w.checkpointOf(s, a.UID).WithMarks(a.Marks))
	case plan.DoReplaceSandbox:
		return w.remember(w.checkpointOf(s, a.UID).WithSandboxReplaced(a.ID))
	case plan.DoEnd:
		return w.end(firm, s, a)
	case plan.DoSetUp:
		return w.setUp(firm, s)
	case plan.DoRemoveVolumes:
		return volume.Release(ctx, w.Root.Dir, a.UID)
	case plan.DoForget:
		return w.forget(firm, a.UID)
	case plan.DoCreateSandbox:
		return w.start.createSandbox(ctx, firm, s, a)
	case plan.DoStopSandbox:
		return w.tearDown(ctx, s, func() error { return w.Cri.StopSandbox(firm, a.ID) })
	case plan.DoRemoveSandbox:
		return w.tearDown(ctx, s, func() error { return w.Cri.RemoveSandbox(firm, a.ID) })
	case plan.DoStartContainer:
		return w.start.startContainer(ctx, firm, s, a)
	case plan.DoResumeContainer:
		return w.start.resumeContainer(ctx, firm, a)
	case plan.DoMarkKill:
		w.MarkKill(s, a)
		return nil
	case plan.DoRemoveContainer:
		return w.removeContainer(firm, s, a)
	}
	return fmt.Errorf("unknown action %q", a.Do)
}

// Tearing down yields to starts on the node, for so long at most, looking so
// often: starts are urgent.
const (
	yieldFor   = 500 * time.Millisecond
	yieldCheck = 10 * time.Millisecond
)

// tearDown stops or removes a sandbox: at once if a desired pod waits for that,
// else when there is a slot, after the stops and starts of other pods.
func (w *Worker) tearDown(ctx context.Context, s *plan.Facts, do func() error) error {
	if s.Pod != nil {
		return Gone(do())
	}
	release, err := slot(ctx, w.Ends)
	if err != nil {
		return err
	}
	defer release()
	for until := time.Now().Add(yieldFor); ctx.Err() == nil && len(w.Starts) > 0 && time.Now().Before(until); {
		pleg.Sleep(ctx, yieldCheck)
	}
	return Gone(do())
}

// Gone takes "not found" for success.
func Gone(err error) error {
	if cri.NotFound(err) {
		return nil
	}
	return err
}

// recordOutcome logs what was done and keeps failures. It returns the errors
// that end the pass.
func (w *Worker) recordOutcome(ctx context.Context, s *plan.Facts, a plan.Action, err error) error {
	log := w.Log
	if a.Name != "" {
		log = log.With("container", a.Name)
	}
	starts := a.Do == plan.DoStartContainer || a.Do == plan.DoResumeContainer
	makes := a.Do == plan.DoAccept || a.Do == plan.DoSetUp || a.Do == plan.DoCreateSandbox
	if errors.Is(err, errFetching) {
		return w.start.awaitImage(ctx, s, a)
	}
	if starts {
		delete(w.fetches.all, a.Name)
	}
	if err == nil {
		w.count(s, a, nil)
		if starts || a.Do == plan.DoCreateSandbox {
			log = log.With("attempt", a.Attempt)
		}
		log.Info(a.Do.Done(), "reason", a.Reason)
		if starts || a.Do == plan.DoCreateSandbox {
			delete(w.failures, a.Name)
		}
		return nil
	}
	switch {
	case ctx.Err() != nil || cri.Unavailable(err):
		return err
	case cri.Busy(err):
		return fmt.Errorf("%w: %w", errBusy, err)
	case a.Do == plan.DoStopSandbox:
		return plan.Because("FailedKillPod", fmt.Errorf("error killing pod: %w", err))
	case !starts && !makes:
		return fmt.Errorf("%s: %w", a.Do, err)
	}
	w.count(s, a, err)
	f := w.failures[a.Name]
	logged, what := f.Message, a.Do.Noun()
	f.Waiting, f.Count = plan.Explain(err), f.Count+1
	var i *image.Error
	f.Retry = time.Now().Add(plan.RetryAfter(f.Count))
	if errors.As(err, &i) {
		f.Waiting, f.Retry = plan.ImageFailure(i)
		what = "image pull"
	}
	w.failures[a.Name] = f
	w.recordFailure(s, a, f, err)
	if f.Message != logged && panics.In(err) == nil {
		log.Warn(what+" failed", "reason", f.Reason, "err", err)
	}
	if makes {
		return errStop
	}
	return nil
}

func (w *Worker) setUp(ctx context.Context, s *plan.Facts) error {
	if c := w.Known[string(s.Pod.UID)]; c != nil && c.Boot != w.Machine.Boot.ID && len(decode.OrderOf(c.Pod).After) > 0 {
		if err := w.remember(c.InBoot(w.Machine.Boot)); err != nil {
			return plan.Because("FailedCheckpoint", err)
		}
	}
	if err := w.Cgroups.Create(ctx, s.Pod.Pod, w.Machine.Now()); err != nil {
		return plan.Because("FailedCreatePodContainer", err)
	}
	if err := w.MakeLogDir(s.Pod.Pod); err != nil {
		return plan.Because("FailedMount", err)
	}
	_, err := w.SetUpVolumes(ctx, s.Pod.Pod, w.Machine.Now())
	return plan.Because("FailedMount", err)
}

// forget removes what the agent itself made for an instance, its checkpoint
// last. If another pod has the uid now, the files named by the uid are that
// pod's and stay.
func (w *Worker) forget(ctx context.Context, uid string) error {
	if err := w.RemoveLogs(uid); err != nil {
		return err
	}
	if other, taken := w.Uids.Other(types.UID(uid), w.Key); taken {
		w.Log.Warn("another pod has this pod's uid; its files stay", "uid", uid, "other", other.String())
	} else if err := w.clear(ctx, uid); err != nil {
		return err
	}
	delete(w.Known, uid)
	w.report.forget(uid)
	return nil
}

// startBackground starts the actions of a step that run in the background, and
// returns the others. It reports whether the rest of the plan must wait for the
// end of those, which wakes the worker.
func (w *Worker) startBackground(s *plan.Facts, step []plan.Action) (rest []plan.Action, wait bool) {
	var stops, hooks []plan.Action
	for _, a := range step {
		switch a.Do {
		case plan.DoStopContainer:
			stops = append(stops, a)
			wait = wait || a.Whole
		case plan.DoRunPostStart:
			hooks = append(hooks, a)
		default:
			rest = append(rest, a)
		}
	}
	w.stops.start(s, stops)
	w.hooks.start(s, hooks)
	return rest, wait
}

// forgetFinished ends the stops and hooks of containers that are no longer alive.
func (w *Worker) forgetFinished(seen *pleg.Observed) {
	alive := map[string]bool{}
	for _, i := range seen.Instances {
		for k := range i.Containers {
			alive[i.Containers[k].ID] = i.Containers[k].Alive()
		}
	}
	w.stops.forget(alive)
	w.hooks.forget(alive)
}

// removeContainer removes a dead container, then its files.
func (w *Worker) removeContainer(ctx context.Context, s *plan.Facts, a plan.Action) error {
	if err := Gone(w.Cri.RemoveContainer(ctx, a.ID)); err != nil {
		return err
	}
	i := s.Observed.Instances[a.UID]
	if c := i.Find(a.ID); c != nil {
		return w.RemoveContainerFiles(ctx, i, c)
	}
	return nil
}
