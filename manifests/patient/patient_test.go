package patient

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hangs is a call that returns its number once it is let go.
type hangs struct {
	made atomic.Int32
	let  chan struct{}
}

func (h *hangs) call() int {
	n := h.made.Add(1)
	<-h.let
	return int(n)
}

func TestACallThatHangsIsWaitedForOnceAndMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int32
		h, c := &hangs{let: make(chan struct{})}, Calls[int]{Most: 2, Late: func() { late.Add(1) }}
		begin := time.Now()
		for range 3 {
			if _, err := c.Ask("a", time.Second, nil, h.call); !errors.Is(err, ErrNoAnswer) {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begin); h.made.Load() != 1 || waited != time.Second {
			t.Errorf("%d calls, %s waited", h.made.Load(), waited)
		}
		if n, err := c.Ask("b", time.Second, nil, func() int { return 7 }); n != 7 || err != nil {
			t.Errorf("another call: %d, %v", n, err)
		}
		close(h.let)
		synctest.Wait()
		if late.Load() != 1 {
			t.Errorf("told %d times of the late answer", late.Load())
		}
		if n, err := c.Ask("a", time.Second, nil, h.call); n != 1 || err != nil {
			t.Errorf("the late answer: %d, %v", n, err)
		}
		if n, err := c.Ask("a", time.Second, nil, h.call); n != 2 || err != nil || c.Unanswered() != 0 || late.Load() != 1 {
			t.Errorf("asked again: %d, %v; %d unanswered, told %d times", n, err, c.Unanswered(), late.Load())
		}
	})
}

func TestCallsThatHangAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := &hangs{let: make(chan struct{})}, Calls[int]{Most: 2}
		defer close(h.let)
		var got []error
		for k := range 3 {
			_, err := c.Ask(fmt.Sprint(k), time.Second, nil, h.call)
			got = append(got, err)
			synctest.Wait()
		}
		if !errors.Is(got[1], ErrNoAnswer) || !errors.Is(got[2], ErrTooMany) || h.made.Load() != 2 {
			t.Errorf("%v, %d calls", got, h.made.Load())
		}
	})
}

// The place of a call that has come to its end is free, and what nobody asks for any more is dropped.
func TestALateAnswerHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := &hangs{let: make(chan struct{})}, Calls[int]{Most: 1}
		c.Ask("a", time.Second, nil, h.call)
		c.Keep(nil)
		if c.Unanswered() != 1 {
			t.Error("the call that hangs is dropped")
		}
		close(h.let)
		synctest.Wait()
		if n, err := c.Ask("b", time.Second, nil, h.call); n != 2 || err != nil {
			t.Errorf("another call: %d, %v", n, err)
		}
		c.Keep(map[string]bool{"b": true})
		if n, err := c.Ask("a", time.Second, nil, h.call); n != 3 || err != nil {
			t.Errorf("asked again: %d, %v", n, err)
		}
	})
}

func TestTheWaitForACallEndsWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c, stop := &hangs{let: make(chan struct{})}, Calls[int]{Most: 1}, make(chan struct{})
		defer close(h.let)
		close(stop)
		begin := time.Now()
		if _, err := c.Ask("a", time.Hour, stop, h.call); !errors.Is(err, ErrNoAnswer) || time.Since(begin) > 0 {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}
