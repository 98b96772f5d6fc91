package image

import (
	"context"
	"sync"
	"time"
)

// limit bounds how many pulls are begun per second, over time; a burst may
// come at once. Who is over the limit waits: failing, as a kubelet does, only
// makes a pod wait longer.
type limit struct {
	every time.Duration // between two; 0: no limit
	burst int

	mu   sync.Mutex
	next time.Time // when the pull after all those that wait may begin, had there been no burst
}

func newLimit(qps, burst int) *limit {
	l := &limit{burst: max(burst, 1)}
	if qps > 0 {
		l.every = time.Second / time.Duration(qps)
	}
	return l
}

// wait returns when one more pull may begin.
func (l *limit) wait(ctx context.Context) error {
	if l.every == 0 {
		return nil
	}
	l.mu.Lock()
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
