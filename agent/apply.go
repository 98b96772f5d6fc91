package agent

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
	"monopod/cri"
	"monopod/manifests/decode"
)

// apply carries out a plan's steps, one after the other, the actions of each
// together. It ends at the first step in which something failed that is not a
// container's own affair; those are remembered as failures and do not keep
// other containers from starting.
func (w *worker) apply(ctx context.Context, s *situation, steps [][]action) error {
	w.prefetch(ctx, s, steps)
	for _, step := range steps {
		step, wait := w.aside(s, step)
		if wait {
			return nil
		}
		if len(step) == 0 {
			continue
		}
		errs := make([]error, len(step))
		var all sync.WaitGroup
		for k := 1; k < len(step); k++ {
			if step[k].Do != doCondemn { // those are written into one checkpoint, one after the other
				all.Go(func() { errs[k] = w.do(ctx, s, step[k]) })
			}
		}
		errs[0] = w.do(ctx, s, step[0])
		for k := 1; k < len(step); k++ {
			if step[k].Do == doCondemn {
				errs[k] = w.do(ctx, s, step[k])
			}
		}
		all.Wait()
		var stop error
		for k, err := range errs {
			if err = w.note(ctx, s, step[k], err); err != nil {
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
func (w *worker) do(ctx context.Context, s *situation, a action) (err error) {
	defer w.caught(&err, string(a.Do), a.Name)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// What changes the runtime is not torn off half-way by a new wish; only
	// waits are. It is torn off when the agent ends, see Agent.Run.
	firm, cancel := w.firm()
	defer cancel()
	switch a.Do {
	case doAccept:
		if err := w.takeOver(firm, s); err != nil {
			return err
		}
		return because("FailedCheckpoint", w.remember(w.checkpointOf(s, a.UID)))
	case doRetire:
		w.noteDown(w.checkpointOf(s, a.UID).retire(metav1.Now()))
		return nil
	case doSettle:
		w.recordVerdict(s, a.Verdict)
		w.noteDown(w.checkpointOf(s, a.UID).settle(a.Verdict))
		return nil
	case doMark:
		return w.remember(w.checkpointOf(s, a.UID).mark(a.Marks))
	case doRenew:
		return w.remember(w.checkpointOf(s, a.UID).renewed(a.ID))
	case doEnd:
		return w.end(firm, s, a)
	case doSetUp:
		return w.setUp(firm, s)
	case doForget:
		return w.forget(firm, a.UID)
	case doCreateSandbox:
		return w.createSandbox(ctx, firm, s, a)
	case doStopSandbox:
		return w.tearDown(ctx, s, func() error { return w.cri.StopSandbox(firm, a.ID) })
	case doRemoveSandbox:
		return w.tearDown(ctx, s, func() error { return w.cri.RemoveSandbox(firm, a.ID) })
	case doStartContainer:
		return w.startContainer(ctx, firm, s, a)
	case doResumeContainer:
		return w.resumeContainer(ctx, firm, a)
	case doCondemn:
		w.condemn(s, a)
		return nil
	case doRemoveContainer:
		return w.removeContainer(firm, s, a)
	}
	return fmt.Errorf("no way to %s", a.Do)
}

// firm returns a context that a new wish does not end, and the end of the
// agent only after a while.
func (w *worker) firm() (context.Context, context.CancelFunc) {
	firm, cancel := context.WithCancelCause(context.WithoutCancel(w.life))
	stop := context.AfterFunc(w.life, func() {
		time.AfterFunc(leaveIn, func() { cancel(context.Cause(w.life)) })
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
func (w *worker) tearDown(ctx context.Context, s *situation, do func() error) error {
	if s.Pod != nil {
		return gone(do())
	}
	release, err := slot(ctx, w.ends)
	if err != nil {
		return err
	}
	defer release()
	for until := time.Now().Add(yieldFor); ctx.Err() == nil && len(w.starts) > 0 && time.Now().Before(until); {
		sleep(ctx, yieldCheck)
	}
	return gone(do())
}

// gone takes "it is not there" for an answer.
func gone(err error) error {
	if cri.NotFound(err) {
		return nil
	}
	return err
}

// note says what was done and keeps what failed. It returns the errors that
// end the pass.
func (w *worker) note(ctx context.Context, s *situation, a action, err error) error {
	log := w.log
	if a.Name != "" {
		log = log.With("container", a.Name)
	}
	starts := a.Do == doStartContainer || a.Do == doResumeContainer
	makes := a.Do == doAccept || a.Do == doSetUp || a.Do == doCreateSandbox
	if errors.Is(err, errFetching) {
		return w.awaitImage(ctx, s, a)
	}
	if starts {
		delete(w.fetches, a.Name)
	}
	if err == nil {
		w.count(s, a, nil)
		if starts || a.Do == doCreateSandbox {
			log = log.With("attempt", a.Attempt)
		}
		log.Info(string(a.Do), "reason", a.Reason)
		if starts || a.Do == doCreateSandbox {
			delete(w.failures, a.Name)
		}
		return nil
	}
	switch {
	case ctx.Err() != nil || cri.Unavailable(err):
		return err
	case cri.Busy(err):
		return fmt.Errorf("%w: %w", errBusy, err)
	case a.Do == doStopSandbox:
		return because("FailedKillPod", fmt.Errorf("error killing pod: %w", err))
	case !starts && !makes:
		return fmt.Errorf("%s: %w", a.Do, err)
	}
	w.count(s, a, err)
	f := w.failures[a.Name]
	said := f.Message
	f.waiting, f.Count = explain(err), f.Count+1
	var i *image.Error
	f.Retry = time.Now().Add(retryAfter(f.Count))
	if errors.As(err, &i) {
		f.waiting, f.Retry = imageFailure(i)
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

// startError is a failure to start a pod or container, with its reason.
type startError struct {
	reason string
	err    error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// because gives an error its reason; nil stays nil.
func because(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &startError{reason, err}
}

// explain returns why a container does not start, in the kubelet's words.
func explain(err error) waiting {
	var i *image.Error
	var s *startError
	switch {
	case errors.As(err, &i):
		return waiting{i.Reason, i.Error()}
	case errors.As(err, &s):
		return waiting{s.reason, s.Error()}
	case panics.In(err) != nil:
		return waiting{reasonFault, err.Error()}
	}
	return waiting{"FailedCreatePodSandBox", "Failed to create pod sandbox: " + err.Error()}
}

func (w *worker) setUp(ctx context.Context, s *situation) error {
	if c := w.known[string(s.Pod.UID)]; c != nil && c.Boot != w.machine.boot.ID && len(decode.OrderOf(c.Pod).After) > 0 {
		if err := w.remember(c.in(w.machine.boot)); err != nil {
			return because("FailedCheckpoint", err)
		}
	}
	if err := w.cgroups.create(ctx, s.Pod.Pod, w.machine.Now()); err != nil {
		return because("FailedCreatePodContainer", err)
	}
	if err := w.makeLogDir(s.Pod.Pod); err != nil {
		return because("FailedMount", err)
	}
	_, err := w.setUpVolumes(ctx, s.Pod.Pod, w.machine.Now())
	return because("FailedMount", err)
}

// forget removes what the agent itself made for an instance, its checkpoint
// last. Another name that has the uid keeps what is called by it.
func (w *worker) forget(ctx context.Context, uid string) error {
	if err := w.removeLogs(uid); err != nil {
		return err
	}
	if other, taken := w.uids.other(types.UID(uid), w.key); taken {
		w.log.Warn("the pod's uid is another one's, which keeps what is called by it", "uid", uid, "other", other.String())
	} else if err := w.clear(ctx, uid); err != nil {
		return err
	}
	delete(w.known, uid)
	if w.lastUID == uid { // a successor of the same uid begins anew
		w.last, w.lastUID = nil, ""
	}
	return nil
}
