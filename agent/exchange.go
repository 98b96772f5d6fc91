package agent

import (
	"context"
	"sync"

	"monopod/agent/worker"
)

// exchange checks, before pods stop for each other, that the disk takes the records of the versions
// that start then: they have no room for which the former ones could be kept until that is certain.
// It belongs to the sync loop's goroutine.
type exchange struct {
	shared  *worker.Pool
	running *sync.WaitGroup

	asking  bool       // a check is running
	refused bool       // the last check failed; the next one is at the next tick
	taken   bool       // the disk took that much in this turn
	found   chan error // the result of a check
}

// recordSize is about what the disk must take for each pod, in bytes.
const recordSize = 64 << 10

// mayStop reports whether so many pods may stop for each other. If it is not known, it asks the
// disk, and the answer leads to another turn.
func (e *exchange) mayStop(ctx context.Context, pods int) bool {
	taken := e.taken
	e.taken = false
	switch {
	case pods == 0:
		return false
	case taken:
		return true
	case e.asking, e.refused:
		return false
	}
	e.asking = true
	e.running.Go(func() {
		err := diskWrites{e.shared}.await(ctx, "room for pods that wait for each other", func() error {
			return e.shared.Disk.Root.TakesData(pods * recordSize)
		})
		select {
		case e.found <- err:
		case <-ctx.Done():
		}
	})
	return false
}

// take handles the result of a check.
func (e *exchange) take(err error) {
	e.asking, e.taken, e.refused = false, err == nil, err != nil
	if e.shared.Faults.IsNew("let pods stop for each other", err) {
		e.shared.Log.Error("pods that wait for each other's allocations run on, as the disk does not take the records of their next versions; it is tried again", "err", err)
	}
}

// tick lets the disk be asked again.
func (e *exchange) tick() { e.refused = false }
