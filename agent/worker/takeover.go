package worker

import (
	"context"
	"errors"
	"fmt"

	"monopod/agent/admission"
	"monopod/agent/plan"
	"monopod/agent/volume"
)

// takeOver makes sure, before the desired pod is accepted, that no other pod has
// its uid. It removes what another pod with the uid left behind, so that the pod
// starts with nothing.
func (w *Worker) takeOver(ctx context.Context, s *plan.Facts) error {
	if err := w.ownUID(s); err != nil {
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

// ownUID refuses to create anything of the desired pod while another pod name
// has its uid in the runtime: that pod has no checkpoint and must go first.
func (w *Worker) ownUID(s *plan.Facts) error {
	uid := string(s.Pod.UID)
	for _, other := range s.Observed.All.NamesOf(uid) {
		if other != w.Key {
			return plan.Because(admission.ReasonUIDInUse, errors.New(admission.UidStillOf(uid, other)))
		}
	}
	return nil
}

// clear removes everything that is named by a uid alone.
func (w *Worker) clear(ctx context.Context, uid string) error {
	// The cgroup first: running processes keep the volumes busy, and the dir that
	// TearDown removes last marks the cgroup as ours.
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
