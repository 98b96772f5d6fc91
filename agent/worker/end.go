package worker

import (
	"context"
	"fmt"
	"time"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
)

// end records how the pod ended, with its final status. Nothing of it runs, so
// its cgroup is removed first.
func (w *Worker) end(ctx context.Context, s *plan.Facts, a plan.Action) error {
	if err := w.pod.shared.Disk.Cgroups.Destroy(ctx, a.UID); err != nil {
		return err
	}
	if s.Checkpoint().Result == nil {
		w.pod.events.RecordResult(s, a.Verdict)
	}
	last := w.report.lastStatus(a.UID)
	st := podstatus.PodStatus(s, &plan.Plan{}, w.pod.shared.Disk.Machine.Now(), last)
	podstatus.EndStatus(s, &st, a.Verdict, last)
	return w.pod.remember(w.checkpointOf(s, a.UID).WithEnd(st))
}

// checkpointOf returns the checkpoint of an instance. The desired one may have none: it runs, its
// checkpoint is missing, and the disk takes no new one.
func (w *Worker) checkpointOf(s *plan.Facts, uid string) *checkpoint.Checkpoint {
	if c := w.pod.known[uid]; c != nil {
		return c
	}
	return w.newCheckpoint(s)
}

// newCheckpoint returns the checkpoint of the desired instance as it is accepted now.
func (w *Worker) newCheckpoint(s *plan.Facts) *checkpoint.Checkpoint {
	since := w.report.since(s)
	active := max(s.Now.Sub(since.Time).Truncate(time.Second), 0)
	return checkpoint.NewCheckpoint(s.Pod, since).InBoot(w.pod.shared.Disk.Machine.Boot).WithActive(active, s.Mark)
}

// accept accepts the desired pod. Its prepared checkpoint becomes the accepted one by a rename,
// which a full disk takes, too; then the time of its start is recorded.
func (w *Worker) accept(ctx context.Context, s *plan.Facts) error {
	if err := w.takeOver(ctx, s); err != nil {
		return err
	}
	c := w.newCheckpoint(s)
	if known := w.pod.known[c.Uid()]; known != nil && !known.Next {
		c = known
	}
	prepared, err := w.pod.shared.Disk.Root.Promote(c)
	if err != nil {
		return plan.Because("FailedCheckpoint", err)
	}
	if prepared {
		w.pod.setKnown(c, false)
		w.pod.rememberOrWarn(c, "when the pod started")
	} else if err := w.pod.remember(c); err != nil {
		return plan.Because("FailedCheckpoint", err)
	}
	return plan.Because("FailedCheckpoint", w.dropOwn(c.Uid()))
}

// dropOwn removes the checkpoint of a next version that is accepted as another version.
func (w *Worker) dropOwn(uid string) error {
	next := w.pod.shared.Disk.Root.NextOf(w.pod.key)
	if next == nil || next.Uid() != uid {
		return nil
	}
	return w.pod.shared.Disk.Root.DropNext(next)
}

// takeOver makes sure, before the desired pod is accepted, that no other pod has
// its uid. It removes what another pod with the uid left behind, so that the pod
// starts with nothing.
func (w *Worker) takeOver(ctx context.Context, s *plan.Facts) error {
	if err := w.pod.ownUID(s); err != nil {
		return err
	}
	waited := s.Failures[plan.SandboxFailure].Reason == admission.ReasonUIDInUse
	if !waited || s.Instance() != nil {
		return nil
	}
	if err := w.clear(ctx, string(s.Pod.UID)); err != nil {
		return plan.Because(admission.ReasonUIDInUse, fmt.Errorf("remove what another pod with this uid left: %w", err))
	}
	return nil
}

// clear removes everything that is named by a uid alone.
func (w *Worker) clear(ctx context.Context, uid string) error {
	if err := w.pod.files.Clear(ctx, uid); err != nil {
		return err
	}
	w.pod.shared.Images.Forget(uid)
	return nil
}

// NextAttempts returns the next attempts of containers whose last attempt the
// runtime lacks: by the last status, and if the runtime has no attempt at all,
// by the log files with content.
func (w *Worker) NextAttempts(s *plan.Facts) map[string]uint32 {
	if s.Pod == nil {
		return nil
	}
	uid := string(s.Pod.UID)
	next := s.FindMissing(w.report.lastStatus(uid))
	w.pod.files.LoggedAttempts(uid, next, func(name string) bool { return s.Instance().Newest(name) == nil })
	return next
}

// sweepOnce sweeps the termination logs that previous agents left, in the first
// pass that observes the pod.
func (w *Worker) sweepOnce(seen *pleg.Observed) {
	if w.swept {
		return
	}
	w.swept = true
	for uid := range w.pod.known {
		w.pod.files.SweepAllTerminationLogs(seen.Instances[uid], uid)
	}
}
