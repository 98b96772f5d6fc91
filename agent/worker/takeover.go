package worker

import (
	"context"
	"errors"
	"fmt"

	"monopod/agent/admission"
	"monopod/agent/plan"
	"monopod/agent/volume"
)

// takeOver makes sure, before the wished pod is accepted, that its uid is its
// own. What another name that had it left behind goes, so that the pod begins
// with nothing.
func (w *Worker) takeOver(ctx context.Context, s *plan.Facts) error {
	if err := w.ownUID(s); err != nil {
		return err
	}
	waited := s.Failures[plan.SandboxFailure].Reason == admission.ReasonUIDInUse
	if !waited || s.Instance() != nil {
		return nil
	}
	if err := w.clear(ctx, string(s.Pod.UID)); err != nil {
		return plan.Because(admission.ReasonUIDInUse, fmt.Errorf("what the pod left that had the uid before: %w", err))
	}
	return nil
}

// ownUID refuses to make anything of the wished pod while another name has its
// uid in the runtime: no checkpoint tells of that one, which must go first.
func (w *Worker) ownUID(s *plan.Facts) error {
	uid := string(s.Pod.UID)
	for _, other := range s.Observed.All.NamesOf(uid) {
		if other != w.Key {
			return plan.Because(admission.ReasonUIDInUse, errors.New(admission.UidStillOf(uid, other)))
		}
	}
	return nil
}

// clear removes what is called by a uid alone.
func (w *Worker) clear(ctx context.Context, uid string) error {
	// What still runs would keep the volumes busy, and the dir that TearDown
	// removes last says that the cgroup is ours.
	if err := w.Cgroups.Destroy(ctx, uid); err != nil {
		return err
	}
	if err := volume.TearDown(ctx, w.Root.Dir, uid); err != nil {
		return err
	}
	w.Images.Forget(uid)
	w.Root.Users.Release(uid)
	return nil
}
