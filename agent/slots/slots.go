// Package slots bounds how many calls of one kind run at once without letting those
// that hang keep the others waiting.
package slots

import (
	"context"
	"sync/atomic"
	"time"
)

// HangsAfter is how long a call may take before it counts as hanging.
const HangsAfter = 10 * time.Second

// Work that yields waits for yieldFor at most, looking each yieldCheck.
const (
	yieldFor   = 500 * time.Millisecond
	yieldCheck = 10 * time.Millisecond
)

// Yield waits until nothing urgent happens, for a while at most, or until ctx ends.
func Yield(ctx context.Context, urgent func() bool) {
	for until := time.Now().Add(yieldFor); urgent() && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(yieldCheck):
		}
	}
}

// Slots are the slots for calls of one kind. A call that hangs gives its slot away for
// good, and the same call made again has a slot among its like: what hangs again and again
// costs the others their patience once.
type Slots struct {
	calls   chan struct{}
	again   chan struct{} // for calls that hung the last time
	hanging atomic.Int32
}

// New returns n slots, and as many for calls that hung the last time.
func New(n int) *Slots {
	return &Slots{calls: make(chan struct{}, n), again: make(chan struct{}, n)}
}

// InUse returns how many calls run that do not hang and did not hang the last time.
func (s *Slots) InUse() int { return len(s.calls) }

// Hanging returns how many calls hang.
func (s *Slots) Hanging() int { return int(s.hanging.Load()) }

// Do makes a call when there is a slot; hung says that it hung the last time. It returns
// the cause of ctx's end if that comes first; ctx does not end the call.
func (s *Slots) Do(ctx context.Context, hung bool, call func() error) error {
	place := s.calls
	if hung {
		place = s.again
	}
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	giveAway := time.AfterFunc(HangsAfter, func() {
		s.hanging.Add(1)
		<-place
	})
	defer func() {
		if giveAway.Stop() {
			<-place
			return
		}
		s.hanging.Add(-1)
	}()
	return call()
}
