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
	"monopod/cri"
	"monopod/manifests/decode"
)

// LeaveIn is how long a call that changes the runtime may still run when the
// agent is told to end; a call that takes longer is left to the runtime, and
// the next agent finds out what became of it.
const LeaveIn = 5 * time.Second

// Apply carries out a plan's steps, one after the other, the actions of each
// together. It ends at the first step in which something failed that is not a
// container's own affair; those are remembered as failures and do not keep
// other containers from starting.
func (w *Worker) Apply(ctx context.Context, s *plan.Facts, steps [][]plan.Action) error {
	w.prefetch(ctx, s, steps)
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
			if step[k].Do != plan.DoMarkKill { // those are written into one checkpoint, one after the other
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

// errStop ends a plan whose failure is remembered: the next plan goes by it.
var errStop = errors.New("the rest of the plan is void")

// do carries out one action.
func (w *Worker) do(ctx context.Context, s *plan.Facts, a plan.Action) (err error) {
	defer w.caught(&err, string(a.Do), a.Name)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// What changes the runtime is not torn off half-way by a new wish; only
	// waits are. It is torn off when the agent ends, see Agent.Run.
	firm, cancel := w.detached()
	defer cancel()
	switch a.Do {
	case plan.DoAccept:
		if err := w.takeOver(firm, s); err != nil {
			return err
		}
		return plan.Because("FailedCheckpoint", w.remember(w.checkpointOf(s, a.UID)))
	case plan.DoMarkRemoving:
		w.rememberOrWarn(w.checkpointOf(s, a.UID).Removing(metav1.Now()))
		return nil
	case plan.DoRecordResult:
		w.recordVerdict(s, a.Verdict)
		w.rememberOrWarn(w.checkpointOf(s, a.UID).WithResult(a.Verdict))
		return nil
	case plan.DoMark:
		return w.remember(w.checkpointOf(s, a.UID).WithMarks(a.Marks))
	case plan.DoReplaceSandbox:
		return w.remember(w.checkpointOf(s, a.UID).WithSandboxReplaced(a.ID))
	case plan.DoEnd:
		return w.end(firm, s, a)
	case plan.DoSetUp:
		return w.setUp(firm, s)
	case plan.DoForget:
		return w.forget(firm, a.UID)
	case plan.DoCreateSandbox:
		return w.createSandbox(ctx, firm, s, a)
	case plan.DoStopSandbox:
		return w.tearDown(ctx, s, func() error { return w.Cri.StopSandbox(firm, a.ID) })
	case plan.DoRemoveSandbox:
		return w.tearDown(ctx, s, func() error { return w.Cri.RemoveSandbox(firm, a.ID) })
	case plan.DoStartContainer:
		return w.startContainer(ctx, firm, s, a)
	case plan.DoResumeContainer:
		return w.resumeContainer(ctx, firm, a)
	case plan.DoMarkKill:
		w.MarkKill(s, a)
		return nil
	case plan.DoRemoveContainer:
		return w.removeContainer(firm, s, a)
	}
	return fmt.Errorf("no way to %s", a.Do)
}

// detached returns a context that a new wish does not end, and the end of the
// agent only after a while.
func (w *Worker) detached() (context.Context, context.CancelFunc) {
	firm, cancel := context.WithCancelCause(context.WithoutCancel(w.Life))
	stop := context.AfterFunc(w.Life, func() {
		time.AfterFunc(LeaveIn, func() { cancel(context.Cause(w.Life)) })
	})
	return firm, func() { stop(); cancel(nil) }
}

// Tearing down yields to what is being started on the node, for so long at
// most, looking so often: a start has somebody waiting for it.
const (
	yieldFor   = 500 * time.Millisecond
	yieldCheck = 10 * time.Millisecond
)

// tearDown does away with a sandbox. Where a successor waits for it, at once;
// else when there is a slot for it: then containers of other pods stop and
// start first.
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

// Gone takes "it is not there" for an answer.
func Gone(err error) error {
	if cri.NotFound(err) {
		return nil
	}
	return err
}

// recordOutcome says what was done and keeps what failed. It returns the errors that
// end the pass.
func (w *Worker) recordOutcome(ctx context.Context, s *plan.Facts, a plan.Action, err error) error {
	log := w.Log
	if a.Name != "" {
		log = log.With("container", a.Name)
	}
	starts := a.Do == plan.DoStartContainer || a.Do == plan.DoResumeContainer
	makes := a.Do == plan.DoAccept || a.Do == plan.DoSetUp || a.Do == plan.DoCreateSandbox
	if errors.Is(err, errFetching) {
		return w.awaitImage(ctx, s, a)
	}
	if starts {
		delete(w.fetches, a.Name)
	}
	if err == nil {
		w.count(s, a, nil)
		if starts || a.Do == plan.DoCreateSandbox {
			log = log.With("attempt", a.Attempt)
		}
		log.Info(string(a.Do), "reason", a.Reason)
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
	said := f.Message
	f.Waiting, f.Count = plan.Explain(err), f.Count+1
	var i *image.Error
	f.Retry = time.Now().Add(plan.RetryAfter(f.Count))
	if errors.As(err, &i) {
		f.Waiting, f.Retry = plan.ImageFailure(i)
	}
	w.failures[a.Name] = f
	w.recordFailure(s, a, f, err)
	if f.Message != said && panics.In(err) == nil {
		log.Warn("cannot "+string(a.Do), "reason", f.Reason, "err", err)
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
	if err := w.makeLogDir(s.Pod.Pod); err != nil {
		return plan.Because("FailedMount", err)
	}
	_, err := w.setUpVolumes(ctx, s.Pod.Pod, w.Machine.Now())
	return plan.Because("FailedMount", err)
}

// forget removes what the agent itself made for an instance, its checkpoint
// last. Another name that has the uid keeps what is called by it.
func (w *Worker) forget(ctx context.Context, uid string) error {
	if err := w.removeLogs(uid); err != nil {
		return err
	}
	if other, taken := w.Uids.Other(types.UID(uid), w.Key); taken {
		w.Log.Warn("the pod's uid is another one's, which keeps what is called by it", "uid", uid, "other", other.String())
	} else if err := w.clear(ctx, uid); err != nil {
		return err
	}
	delete(w.Known, uid)
	if w.lastUID == uid { // a successor of the same uid begins anew
		w.last, w.lastUID = nil, ""
	}
	return nil
}
