package agent

import "fmt"

// checkpointOf returns what is known of an instance. The wanted one may have
// none: it runs, its checkpoint was lost, and the disk takes no other.
func (w *worker) checkpointOf(s *situation, uid string) *checkpoint {
	if c := w.known[uid]; c != nil {
		return c
	}
	return newCheckpoint(s.Pod, w.since(s)).in(w.machine.boot)
}

// remember writes a checkpoint and goes by it.
func (w *worker) remember(c *checkpoint) error {
	if other, taken := w.uids.other(c.Pod.UID, w.key); taken {
		return fmt.Errorf("checkpoint of %s: the pod %s has its uid %s", w.key, other, c.uid())
	}
	if err := w.root.save(c); err != nil {
		return err
	}
	w.goBy(c, false)
	return nil
}

// noteDown remembers what is to become of an instance. A disk that is full does
// not keep that from being done: another agent would find it out once more.
func (w *worker) noteDown(c *checkpoint) {
	if err := w.remember(c); err != nil {
		w.log.Warn("another agent would not know that the pod is being stopped", "err", err)
		w.goBy(c, true)
	}
}

// goBy makes a checkpoint what is known of its instance. failed: it could not
// be written, and where there is no earlier one on disk either, the pod is
// accepted once more, as soon as the disk takes it.
func (w *worker) goBy(c *checkpoint, failed bool) {
	d, old := *c, w.known[c.uid()]
	d.unwritten = failed && (old == nil || old.unwritten)
	w.known[c.uid()] = &d
}
