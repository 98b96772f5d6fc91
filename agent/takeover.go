package agent

import (
	"context"
	"errors"
	"fmt"

	"monopod/agent/volume"
)

// takeOver makes sure, before the wished pod is accepted, that its uid is its
// own. What another name that had it left behind goes, so that the pod begins
// with nothing.
func (w *worker) takeOver(ctx context.Context, s *situation) error {
	if err := w.ownUID(s); err != nil {
		return err
	}
	waited := s.Failures[sandboxFailure].Reason == reasonUIDInUse
	if !waited || s.instance() != nil {
		return nil
	}
	if err := w.clear(ctx, string(s.Pod.UID)); err != nil {
		return because(reasonUIDInUse, fmt.Errorf("what the pod left that had the uid before: %w", err))
	}
	return nil
}

// ownUID refuses to make anything of the wished pod while another name has its
// uid in the runtime: no checkpoint tells of that one, which must go first.
func (w *worker) ownUID(s *situation) error {
	uid := string(s.Pod.UID)
	for _, other := range s.Observed.all.namesOf(uid) {
		if other != w.key {
			return because(reasonUIDInUse, errors.New(uidStillOf(uid, other)))
		}
	}
	return nil
}

// clear removes what is called by a uid alone.
func (w *worker) clear(ctx context.Context, uid string) error {
	// What still runs would keep the volumes busy, and the dir that TearDown
	// removes last says that the cgroup is ours.
	if err := w.cgroups.destroy(ctx, uid); err != nil {
		return err
	}
	if err := volume.TearDown(ctx, w.root.dir, uid); err != nil {
		return err
	}
	w.images.Forget(uid)
	w.root.users.release(uid)
	return nil
}
