package gc

import (
	"context"
	"time"

	"monopod/agent/saidonce"
	"monopod/agent/volume"
	"monopod/agent/wake"
)

// Trash deletes the files of removed pods, beside everything else.
type Trash struct {
	garbage *Garbage
	woken   wake.Slot
	logged  saidonce.Error
}

// NewTrash returns the trash of a root dir.
func NewTrash(g *Garbage) *Trash { return &Trash{garbage: g, woken: wake.New()} }

// Wake signals that something was moved into the trash.
func (t *Trash) Wake() { t.woken.Wake() }

// Run empties the trash whenever something is added, and again after a failure, until ctx ends.
func (t *Trash) Run(ctx context.Context) {
	for tick := time.NewTicker(GarbageEvery); ; {
		err := volume.EmptyTrash(ctx, t.garbage.Root.Dir)
		if ctx.Err() == nil && t.logged.IsNew(err) {
			t.garbage.Log.Warn("files of removed pods cannot be deleted; trying again", "err", err)
		}
		select {
		case <-t.woken:
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}
