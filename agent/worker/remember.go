package worker

import (
	"fmt"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
)

// checkpointOf returns the checkpoint of an instance. The desired one may have
// none: it runs, its checkpoint is missing, and the disk takes no other.
func (w *Worker) checkpointOf(s *plan.Facts, uid string) *checkpoint.Checkpoint {
	if c := w.Known[uid]; c != nil {
		return c
	}
	return checkpoint.NewCheckpoint(s.Pod, w.since(s)).InBoot(w.Machine.Boot)
}

// remember saves a checkpoint and uses it from now on.
func (w *Worker) remember(c *checkpoint.Checkpoint) error {
	if other, taken := w.Uids.Other(c.Pod.UID, w.Key); taken {
		return fmt.Errorf("checkpoint of %s: the pod %s has its uid %s", w.Key, other, c.Uid())
	}
	if err := w.Root.Save(c); err != nil {
		return err
	}
	w.setKnown(c, false)
	return nil
}

// rememberOrWarn saves a checkpoint. A full disk does not stop the work: a
// restarted agent decides the same again.
func (w *Worker) rememberOrWarn(c *checkpoint.Checkpoint) {
	if err := w.remember(c); err != nil {
		w.Log.Warn("checkpoint is not saved; a restarted agent does not know that the pod is being stopped", "err", err)
		w.setKnown(c, true)
	}
}

// setKnown makes c the checkpoint of its instance. failed: it could not be
// saved; if no earlier one is on disk either, the pod is accepted again, as soon
// as the disk takes the checkpoint.
func (w *Worker) setKnown(c *checkpoint.Checkpoint, failed bool) {
	d, old := *c, w.Known[c.Uid()]
	d.Unwritten = failed && (old == nil || old.Unwritten)
	w.Known[c.Uid()] = &d
}
