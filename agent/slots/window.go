package slots

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// lateAfter is how long after its due time a call counts as late.
	lateAfter = 5 * time.Second
	// stuckAfter is how long after that time a call gives its place away: it may never end.
	stuckAfter = 30 * time.Second
)

// Window bounds how many calls of one kind run at once by how soon they are answered: one that
// comes late halves the bound, those in time raise it again, by one for each full window, as TCP
// does with packets (RFC 5681). What one machine answers at once, another one cannot. Any goroutine
// may use it.
type Window struct {
	first lane
	again lane // for calls that failed the last time: they keep no others waiting
}

// NewWindow returns a window of n calls, which never is below a sixteenth of that.
func NewWindow(n int) *Window {
	return &Window{lane{most: n, size: float64(n)}, lane{most: n, size: float64(n)}}
}

// Do makes a call when there is room; failed says that it failed the last time. For the time due the
// call may wait for something else than the one who answers: if that is long, it takes no room
// meanwhile. Do returns the cause of ctx's end if that comes before the call; ctx does not end the
// call.
func (w *Window) Do(ctx context.Context, failed bool, due time.Duration, call func() error) error {
	l := &w.first
	if failed {
		l = &w.again
	}
	if err := l.enter(ctx); err != nil {
		return err
	}
	start := time.Now()
	leave := sync.OnceFunc(l.leave)
	defer leave()
	late := time.AfterFunc(due+lateAfter, func() { l.shrink(start) })
	keeps := due + stuckAfter
	if due > HangsAfter {
		keeps = HangsAfter
	}
	defer time.AfterFunc(keeps, leave).Stop()
	err := call()
	if late.Stop() {
		l.grow()
	}
	return err
}

// lane is the calls of a window that wait for each other.
type lane struct {
	most int

	mu      sync.Mutex
	size    float64 // how many calls may run
	running int
	waiting []chan struct{} // in order; a closed one may run
	halved  time.Time       // when that number last was
}

// enter waits for room.
func (l *lane) enter(ctx context.Context) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.running < int(l.size) {
		l.running++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := slices.Index(l.waiting, turn); k >= 0 {
		l.waiting = slices.Delete(l.waiting, k, k+1)
	} else { // it got its turn meanwhile
		l.running--
		l.admit()
	}
	return context.Cause(ctx)
}

func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.admit()
}

// admit gives those who wait the room that there is. l.mu is held.
func (l *lane) admit() {
	for len(l.waiting) > 0 && l.running < int(l.size) {
		close(l.waiting[0])
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.running++
	}
}

// shrink halves the window for a late call that started then, once for all that ran at the same time.
func (l *lane) shrink(start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start.After(l.halved) {
		l.size, l.halved = max(l.size/2, float64(l.most)/16, 1), time.Now()
	}
}

func (l *lane) grow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size = min(l.size+1/l.size, float64(l.most))
	l.admit()
}
