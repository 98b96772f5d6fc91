package slots

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hang makes n calls that end with the returned func, and waits until each has a
// slot or waits for one.
func hang(s *Slots, n int) (end func()) {
	over, done := make(chan struct{}), make(chan error, n)
	for range n {
		go func() { done <- s.Do(context.Background(), false, func() error { <-over; return nil }) }()
	}
	synctest.Wait()
	return func() {
		close(over)
		for range n {
			<-done
		}
	}
}

func TestCallsThatHangGiveTheirSlotsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(2)
		end := hang(s, 2)
		start := time.Now()
		if err := s.Do(t.Context(), false, func() error { return nil }); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited != HangsAfter {
			t.Errorf("another call waited %s, want %s", waited, HangsAfter)
		}
		synctest.Wait()
		if s.Hanging() != 2 || s.InUse() != 0 {
			t.Errorf("%d hang, %d run", s.Hanging(), s.InUse())
		}
		end()
		if s.Hanging() != 0 || s.InUse() != 0 {
			t.Errorf("after their ends %d hang, %d run", s.Hanging(), s.InUse())
		}
	})
}

// Twenty calls for two slots, all of which hang, keep others waiting once.
func TestCallsThatHungTheLastTimeKeepNoOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(2)
		end := hang(s, 20)
		time.Sleep(10*HangsAfter + time.Second)
		synctest.Wait()
		if s.Hanging() != 20 {
			t.Fatalf("%d hang", s.Hanging())
		}
		end()
		over, done := make(chan struct{}), make(chan error, 20)
		for range 20 {
			go func() { done <- s.Do(context.Background(), true, func() error { <-over; return nil }) }()
		}
		synctest.Wait()
		start := time.Now()
		if err := s.Do(t.Context(), false, func() error { return nil }); err != nil || time.Since(start) > 0 {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		close(over)
		for range 20 {
			<-done
		}
	})
}

func TestAWaitForASlotCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1)
		end := hang(s, 1)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if err := s.Do(ctx, false, func() error { return nil }); err == nil || err.Error() != "enough" {
			t.Error(err)
		}
		end()
	})
}

func TestSlotsBoundCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(3)
		end := hang(s, 5)
		if s.InUse() != 3 {
			t.Errorf("%d calls run, want 3", s.InUse())
		}
		end()
		if s.InUse() != 0 {
			t.Errorf("%d calls run after their ends", s.InUse())
		}
	})
}

// What yields waits for urgent work, and not for ever.
func TestYieldingHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, row := range []struct {
			name         string
			urgent, want time.Duration
		}{{"nothing is urgent", 0, 0}, {"something is", 100 * time.Millisecond, 100 * time.Millisecond}, {"something hangs", time.Hour, yieldFor}} {
			start = time.Now()
			Yield(t.Context(), func() bool { return time.Since(start) < row.urgent })
			if took := time.Since(start); took != row.want {
				t.Errorf("%s: it took %v, want %v", row.name, took, row.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		if Yield(ctx, func() bool { return true }); time.Since(start) != 0 {
			t.Errorf("it took %v after the end of its context", time.Since(start))
		}
	})
}

// Where a call takes longer the more of them run, as on a machine that has too much to do, they do
// not become more and more.
func TestSlowCallsDoNotBecomeMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, alone = 4, 5 * time.Second
		s := New(slots)
		running, most := 0, 0
		var mu sync.Mutex
		share := func() time.Duration { // of a second
			mu.Lock()
			defer mu.Unlock()
			most = max(most, running)
			return time.Second / time.Duration(running)
		}
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_ = s.Do(context.Background(), false, func() error {
					count(1)
					defer count(-1)
					for left := alone; left > 0; left -= share() {
						time.Sleep(time.Second)
					}
					return nil
				})
			})
		}
		all.Wait()
		if most > 4*slots {
			t.Errorf("%d calls ran at once, of %d slots", most, slots)
		}
	})
}

// What hangs is told from that: once others are quick, it keeps its slot no longer than before.
func TestAHangIsToldFromSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1)
		takes := func(d time.Duration) {
			_ = s.Do(context.Background(), false, func() error { time.Sleep(d); return nil })
		}
		waitsBesideAHang := func() time.Duration {
			end := hang(s, 1)
			start := time.Now()
			takes(0)
			waited := time.Since(start)
			end()
			return waited
		}
		takes(9 * time.Second)
		if waited := waitsBesideAHang(); waited != 27*time.Second {
			t.Errorf("beside calls that take 9 s, one that hangs keeps others waiting for %s", waited)
		}
		for range 30 {
			takes(100 * time.Millisecond)
		}
		if waited := waitsBesideAHang(); waited != HangsAfter {
			t.Errorf("beside quick calls, one that hangs keeps others waiting for %s", waited)
		}
		takes(time.Hour)
		if waited := waitsBesideAHang(); waited != keepsMost {
			t.Errorf("beside calls that take an hour, one that hangs keeps others waiting for %s", waited)
		}
	})
}
