// Package slots bounds how many calls of one kind run at once without letting those
// that hang keep the others waiting.
package slots

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// HangsAfter is how long a call may take before it counts as hanging.
const HangsAfter = 10 * time.Second

// A call keeps its slot for so many times what those that succeeded lately took, and not for longer
// than this.
const (
	keepsTimes = 3
	keepsMost  = 2 * time.Minute
)

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
//
// Where all calls take long, as the machine has too much to do, more of them at once would take
// longer still, until none is answered before its deadline. So a call hangs if it takes much longer
// than those that succeeded.
type Slots struct {
	calls   chan struct{}
	again   chan struct{} // for calls that hung the last time
	hanging atomic.Int32

	mu   sync.Mutex
	took time.Duration // what calls took that succeeded, the longer ones of the last few
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
	start := time.Now()
	leave := s.keep(place, start)
	defer leave()
	err := call()
	if err == nil {
		s.succeeded(time.Since(start))
	}
	return err
}

// keep keeps a slot until the call that started then hangs, or until leave is called.
func (s *Slots) keep(place chan struct{}, start time.Time) (leave func()) {
	var mu sync.Mutex
	var timer *time.Timer
	isHanging, hasEnded := false, false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(HangsAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if hasEnded {
			return
		}
		if more := s.patience() - time.Since(start); more > 0 {
			timer.Reset(more)
			return
		}
		isHanging = true
		s.hanging.Add(1)
		<-place
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		hasEnded = true
		timer.Stop()
		if isHanging {
			s.hanging.Add(-1)
			return
		}
		<-place
	}
}

// patience returns how long a call may take before it gives its slot away.
func (s *Slots) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(max(HangsAfter, keepsTimes*s.took), keepsMost)
}

// succeeded notes what a call took. Each shorter one forgets an eighth of what is known.
func (s *Slots) succeeded(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = max(took, s.took-s.took/8)
}
