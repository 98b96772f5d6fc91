package worker

import (
	"fmt"

	"monopod/agent/checkpoint"
)

// remember saves a checkpoint and uses it from now on.
func (p *pod) remember(c *checkpoint.Checkpoint) error { return p.save(c, p.Root.Save) }

func (p *pod) save(c *checkpoint.Checkpoint, save func(*checkpoint.Checkpoint) error) error {
	if other, taken := p.Uids.Other(c.Pod.UID, p.Key); taken {
		return fmt.Errorf("checkpoint of %s: the pod %s has its uid %s", p.Key, other, c.Uid())
	}
	if err := save(c); err != nil {
		return err
	}
	p.setKnown(c, false)
	if c.Next { // it is what was accepted now
		return p.Root.DropNext(p.Root.NextOf(p.Key))
	}
	return nil
}

// rememberOrWarn saves a checkpoint, which says what. Neither a full disk nor a power cut
// stops the work: a restarted agent decides the same again.
func (p *pod) rememberOrWarn(c *checkpoint.Checkpoint, what string) {
	err := p.save(c, p.Root.SaveLightly)
	if p.unsaved.IsNew(what, err) {
		p.Log.Warn("checkpoint is not saved; a restarted agent does not know "+what, "err", err)
	}
	if err != nil {
		p.setKnown(c, true)
	}
}

// setKnown makes c the checkpoint of its instance. failed: it could not be
// saved; if no earlier one is on disk either, the pod is accepted again, as soon
// as the disk takes the checkpoint.
func (p *pod) setKnown(c *checkpoint.Checkpoint, failed bool) {
	d, old := *c, p.Known[c.Uid()]
	d.Unwritten, d.Next = failed && (old == nil || old.Unwritten), failed && c.Next
	p.Known[c.Uid()] = &d
}
