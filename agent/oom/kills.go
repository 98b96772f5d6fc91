package oom

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// kept is how many kills are kept, the newest ones.
const kept = 512

// lately is how long after the end of a container the log may not have been read up to that end.
const lately = 10 * time.Second

// Kills are the newest kills in the kernel's log. Any goroutine may use it; nil has none.
type Kills struct {
	file   *os.File
	raw    syscall.RawConn
	opened time.Time
	more   chan struct{} // fresh has some; of one slot

	mu         sync.Mutex
	report     report
	isUpToDate bool   // all that was logged before the log was opened has been read
	all        []Kill // the newest last
	fresh      []Kill // not handed on by Watch yet
}

// add adds a kill. k.mu is locked.
func (k *Kills) add(kill Kill) {
	k.fresh = append(k.fresh, kill)
	select {
	case k.more <- struct{}{}:
	default:
	}
	if len(k.all) == kept {
		k.all = append(k.all[:0], k.all[1:]...)
	}
	k.all = append(k.all, kill)
}

// Last returns the last kill in the container with this id, which has ended; nil: none is known. What
// the end is said to be may be decided by this answer for good, so the log is read up to now if it
// may not have been since then. The kernel logs which process it is going to kill before that ends,
// and that it has killed it moments later: the former is enough,
// at its own time: a process may end by itself before it is killed.
func (k *Kills) Last(id string, ended time.Time) *Kill {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isUpToDate || time.Since(ended) < lately {
		_ = k.raw.Control(func(fd uintptr) { _ = k.readOn(int(fd)) }) // Watch meets the error, too
	}
	chosen := k.report.chosen
	if chosen != nil && chosen.In(id) {
		kill := *chosen
		return &kill
	}
	for at := len(k.all) - 1; at >= 0; at-- {
		if k.all[at].In(id) {
			kill := k.all[at]
			return &kill
		}
	}
	return nil
}
