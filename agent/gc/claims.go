package gc

import (
	"context"
	"time"

	"monopod/agent/saidonce"
	"monopod/agent/volume"
)

// Claims records the directories of claims that former agents made.
type Claims struct {
	*Garbage
	said saidonce.Error
}

// Run records them once, again after a failure, until ctx ends. It waits for no disk that does
// not answer.
func (c *Claims) Run(ctx context.Context) {
	for tick := time.NewTicker(GarbageEvery); ; {
		recorded := make(chan error, 1)
		go func() { recorded <- volume.RecordClaims(c.Root.Dir) }()
		var err error
		select {
		case err = <-recorded:
		case <-ctx.Done():
		}
		if ctx.Err() != nil || err == nil {
			tick.Stop()
			return
		}
		if c.said.IsNew(err) {
			c.Log.Warn("the directories of PersistentVolumeClaims cannot be recorded: one whose disk is not mounted after a reboot would be made again, empty; trying again", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
