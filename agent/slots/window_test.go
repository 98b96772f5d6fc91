package slots

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const grace = 2 * time.Second

// busy is a runtime that kills one container after the other, each in that time.
type busy struct {
	each time.Duration
	turn chan struct{} // one slot
}

func (b *busy) stop() error {
	time.Sleep(grace)
	b.turn <- struct{}{}
	time.Sleep(b.each)
	<-b.turn
	return nil
}

// A runtime that needs 150 ms for each is given no more than it answers soon, and is never idle.
func TestAThousandStopsComeAsFastAsTheyAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, each = 1000, 150 * time.Millisecond
		w, r := NewWindow(256), &busy{each, make(chan struct{}, 1)}
		var mu sync.Mutex
		var longest, all time.Duration
		begin := time.Now()
		var stops sync.WaitGroup
		for range n {
			stops.Go(func() {
				err := w.Do(t.Context(), false, grace, func() error {
					asked := time.Now()
					err := r.stop()
					mu.Lock()
					defer mu.Unlock()
					longest = max(longest, time.Since(asked))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		stops.Wait()
		all = time.Since(begin)
		if most := grace + stuckAfter + 10*time.Second; longest > most {
			t.Errorf("one was answered after %s, want %s at most: all at once take %s", longest, most, n*each)
		}
		if most := n * each * 11 / 10; all > most {
			t.Errorf("all took %s, want %s at most", all, most)
		}
	})
}

// What waits for its grace period to end keeps no others waiting, nor does what never ends.
func TestStopsThatWaitGiveTheirRoomAway(t *testing.T) {
	for _, c := range []struct{ due, want time.Duration }{{time.Minute, HangsAfter}, {grace, grace + stuckAfter}} {
		synctest.Test(t, func(t *testing.T) {
			w, over := NewWindow(2), make(chan struct{})
			var stops sync.WaitGroup
			defer stops.Wait()
			defer close(over)
			for range 2 {
				stops.Go(func() { _ = w.Do(t.Context(), false, c.due, func() error { <-over; return nil }) })
			}
			synctest.Wait()
			begin := time.Now()
			if err := w.Do(t.Context(), true, grace, func() error { return nil }); err != nil || time.Since(begin) > 0 {
				t.Errorf("due in %s: one that failed before waited for others: %s, %v", c.due, time.Since(begin), err)
			}
			if err := w.Do(t.Context(), false, grace, func() error { return nil }); err != nil || time.Since(begin) != c.want {
				t.Errorf("due in %s: another one waited %s, want %s: %v", c.due, time.Since(begin), c.want, err)
			}
		})
	}
}

// A window that shrank grows again, and never ends.
func TestAWindowShrinksOnceForAllThatAreLateAndGrowsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWindow(32)
		round := func(n int, takes time.Duration) {
			var stops sync.WaitGroup
			for range n {
				stops.Go(func() { _ = w.Do(t.Context(), false, grace, func() error { time.Sleep(takes); return nil }) })
			}
			stops.Wait()
		}
		for _, want := range []float64{16, 8, 4, 2, 2} {
			round(int(w.first.size), grace+lateAfter+time.Second)
			if w.first.size != want {
				t.Errorf("the window is %v, want %v", w.first.size, want)
			}
		}
		round(600, grace)
		if w.first.size != 32 || w.first.running != 0 {
			t.Errorf("the window is %v in the end, with %d in it", w.first.size, w.first.running)
		}
	})
}

func TestAWaitForRoomCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, over := NewWindow(1), make(chan struct{})
		var stops sync.WaitGroup
		stops.Go(func() { _ = w.Do(t.Context(), false, grace, func() error { <-over; return nil }) })
		synctest.Wait()
		waits := true
		stops.Go(func() { _ = w.Do(t.Context(), false, grace, func() error { waits = false; return nil }) })
		synctest.Wait()
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		if err := w.Do(ctx, false, grace, func() error { t.Error("it ran"); return nil }); !errors.Is(err, enough) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		if !waits || len(w.first.waiting) != 1 {
			t.Errorf("then another one waits: %v, in a row of %d", waits, len(w.first.waiting))
		}
		close(over)
		stops.Wait()
		if len(w.first.waiting) != 0 || w.first.running != 0 {
			t.Errorf("%d wait, %d run", len(w.first.waiting), w.first.running)
		}
	})
}
