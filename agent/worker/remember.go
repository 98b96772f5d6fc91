package worker

import (
	"fmt"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
)

// checkpointOf returns what is known of an instance. The wanted one may have
// none: it runs, its checkpoint was lost, and the disk takes no other.
func (w *Worker) checkpointOf(s *plan.Facts, uid string) *checkpoint.Checkpoint {
	if c := w.Known[uid]; c != nil {
		return c
	}
	return checkpoint.NewCheckpoint(s.Pod, w.since(s)).InBoot(w.Machine.Boot)
}

// remember writes a checkpoint and goes by it.
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

// rememberOrWarn remembers what is to become of an instance. A disk that is full does
// not keep that from being done: another agent would find it out once more.
func (w *Worker) rememberOrWarn(c *checkpoint.Checkpoint) {
	if err := w.remember(c); err != nil {
		w.Log.Warn("another agent would not know that the pod is being stopped", "err", err)
		w.setKnown(c, true)
	}
}

// setKnown makes a checkpoint what is known of its instance. failed: it could not
// be written, and where there is no earlier one on disk either, the pod is
// accepted once more, as soon as the disk takes it.
func (w *Worker) setKnown(c *checkpoint.Checkpoint, failed bool) {
	d, old := *c, w.Known[c.Uid()]
	d.Unwritten = failed && (old == nil || old.Unwritten)
	w.Known[c.Uid()] = &d
}
