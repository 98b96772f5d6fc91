package worker

import (
	"fmt"

	"monopod/agent/checkpoint"
)

// remember saves a checkpoint and uses it from now on.
func (p *pod) remember(c *checkpoint.Checkpoint) error { return p.save(c, p.shared.Disk.Root.Save) }

func (p *pod) save(c *checkpoint.Checkpoint, save func(*checkpoint.Checkpoint) error) error {
	if other, taken := p.shared.Uids.Other(c.Pod.UID, p.key); taken {
		return fmt.Errorf("checkpoint of %s: the pod %s has its uid %s", p.key, other, c.Uid())
	}
	if err := save(c); err != nil {
		return err
	}
	p.setKnown(c, false)
	next := p.shared.Disk.Root.NextOf(p.key)
	if c.Next && next != nil && next.Uid() == c.Uid() && next.Digest == c.Digest { // it is an instance now
		return p.shared.Disk.Root.DropNext(next)
	}
	return nil
}

// rememberOrWarn saves a checkpoint; what describes its content, for the log. Neither a full disk
// nor a power cut stops the work: a restarted agent decides the same again. It reports whether the
// disk took it.
func (p *pod) rememberOrWarn(c *checkpoint.Checkpoint, what string) (saved bool) {
	err := p.save(c, p.shared.Disk.Root.SaveLightly)
	if p.unsaved.IsNew(what, err) {
		p.log.Warn("checkpoint is not saved; a restarted agent does not know "+what, "err", err)
	}
	if err != nil {
		p.setKnown(c, true)
	}
	return err == nil
}

// setKnown makes c the checkpoint of its instance. failed: it could not be
// saved; if no earlier one is on disk either, the pod is accepted again, as soon
// as the disk takes the checkpoint.
func (p *pod) setKnown(c *checkpoint.Checkpoint, failed bool) {
	d, old := *c, p.known[c.Uid()]
	d.Unwritten, d.Next = failed && (old == nil || old.Unwritten), failed && c.Next
	p.known[c.Uid()] = &d
}
