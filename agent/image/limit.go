package image

import (
	"context"
	"sync"
	"time"
)

// limit bounds how many pulls start per second, over time; a burst may start at
// once. A pull over the limit waits: failing, as a kubelet does, only makes a pod
// wait longer.
type limit struct {
	mu    sync.Mutex
	every time.Duration // between two; 0: no limit
	burst int
	next  time.Time // when the pull after all waiting ones may start, had there been no burst
}

func newLimit(qps, burst int) *limit {
	l := &limit{}
	l.set(qps, burst)
	return l
}

// set changes the limit for later pulls.
func (l *limit) set(qps, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.every, l.burst, l.next = 0, max(burst, 1), time.Time{}
	if qps > 0 {
		l.every = time.Second / time.Duration(qps)
	}
}

// wait returns when one more pull may start.
func (l *limit) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.every == 0 {
		l.mu.Unlock()
		return nil
	}
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	turn := l.next.Add(-time.Duration(l.burst-1) * l.every)
	l.next = l.next.Add(l.every)
	l.mu.Unlock()
	t := time.NewTimer(time.Until(turn))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
