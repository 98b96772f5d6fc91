// Package slots bounds how many calls of one kind run at once without letting those
// that hang keep the others waiting.
package slots

import (
	"context"
	"sync"
	"time"
)

// HangsAfter is how long a call may take before it counts as hanging.
const HangsAfter = 10 * time.Second

// retryMove is how often a call that hangs looks for room among the others that do.
const retryMove = time.Second

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

// Slots are the slots for calls of one kind. A call that hangs gives its slot to
// another call and goes on in a pool of the same size; if that is full, it keeps
// its slot.
type Slots struct {
	calls, hanging chan struct{}
}

// New returns n slots, and as many for calls that hang.
func New(n int) *Slots {
	return &Slots{calls: make(chan struct{}, n), hanging: make(chan struct{}, n)}
}

// InUse returns how many calls run that do not hang.
func (s *Slots) InUse() int { return len(s.calls) }

// Hanging returns how many calls hang.
func (s *Slots) Hanging() int { return len(s.hanging) }

// Do makes a call when there is a slot. It returns the cause of ctx's end if that
// comes first; ctx does not end the call.
func (s *Slots) Do(ctx context.Context, call func() error) error {
	select {
	case s.calls <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h := &held{slots: s, in: s.calls}
	h.mu.Lock()
	h.timer = time.AfterFunc(HangsAfter, h.move)
	h.mu.Unlock()
	defer h.release()
	return call()
}

// held is the slot of one call.
type held struct {
	slots *Slots
	mu    sync.Mutex
	in    chan struct{} // nil: the call has ended
	timer *time.Timer
}

// move gives the slot of a call that hangs to others.
func (h *held) move() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in == nil {
		return
	}
	select {
	case h.slots.hanging <- struct{}{}:
		<-h.in
		h.in = h.slots.hanging
	default:
		h.timer.Reset(retryMove)
	}
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer.Stop()
	<-h.in
	h.in = nil
}
