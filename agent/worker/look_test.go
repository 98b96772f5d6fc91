package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/plan"
)

// What a worker waits for between two passes, and what ends the wait.
func TestWhatEndsAWait(t *testing.T) {
	const never = 100 * time.Hour
	at := func(d time.Duration) func() look { return func() look { return lookAt(time.Now().Add(d)) } }
	deaf := func(d time.Duration) func() look { return func() look { return retryAt(time.Now().Add(d)) } }
	nothing := func() look { return look{} }
	for _, row := range []struct {
		name                  string
		next                  func() look
		woken, asked, updated time.Duration // after the wait has started; 0: not
		want                  time.Duration
	}{
		{"at once", lookAgain, 0, 0, 0, 0},
		{"at its time", at(time.Minute), 0, 0, 0, time.Minute},
		{"at a time that is past", at(-time.Minute), 0, 0, 0, 0},
		{"by a wake before its time", at(time.Minute), time.Second, 0, 0, time.Second},
		{"by a wake, whatever the time", nothing, time.Hour, 0, 0, time.Hour},
		{"by a request", nothing, 0, time.Second, 0, time.Second},
		{"by an update", nothing, 0, 0, time.Second, time.Second},
		{"not by a wake after a failure", deaf(time.Minute), time.Second, 0, 0, time.Minute},
		{"by a request after a failure", deaf(time.Minute), time.Second, 2 * time.Second, 0, 2 * time.Second},
		{"by an update after a failure", deaf(time.Minute), time.Second, 0, 2 * time.Second, 2 * time.Second},
		{"by nothing", nothing, 0, 0, 0, never},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				woken, asked, updated, over := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}), time.After(never)
				after := func(d time.Duration, do func()) {
					if d > 0 {
						time.AfterFunc(d, do)
					}
				}
				after(row.woken, func() { woken <- struct{}{} })
				after(row.asked, func() { asked <- struct{}{} })
				after(row.updated, func() { close(updated) })
				done, began := make(chan struct{}), time.Now()
				go func() {
					defer close(done)
					newAlarm(woken, asked).wait(updated, row.next())
				}()
				select {
				case <-done:
				case <-over:
					asked <- struct{}{}
					<-done
				}
				if took := time.Since(began); took != row.want {
					t.Errorf("it waited %s, want %s", took, row.want)
				}
			})
		})
	}
}

// A wake that came while a wait was deaf counts for the next one.
func TestAMaskedWakeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{}, 1)
		a := newAlarm(woken, nil)
		woken <- struct{}{}
		began := time.Now()
		a.wait(nil, retryAt(began.Add(time.Second)))
		a.wait(nil, look{})
		if took := time.Since(began); took != time.Second {
			t.Errorf("the two waits took %s", took)
		}
	})
}

// The time of one wait does not end the next.
func TestAWaitLeavesNoTimerBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{}, 1)
		a := newAlarm(woken, nil)
		woken <- struct{}{}
		began := time.Now()
		a.wait(nil, lookAt(began.Add(time.Minute)))
		time.AfterFunc(time.Hour, func() { woken <- struct{}{} })
		a.wait(nil, look{})
		if took := time.Since(began); took != time.Hour {
			t.Errorf("the two waits took %s", took)
		}
	})
}

// A worker whose plans never come to an end pauses now and then, and a pause starts the
// count again.
func TestPassesThatSpinPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := newAlarm(nil, nil), time.Now()
		for range 2*spinLimit - 1 {
			a.wait(nil, lookAgain())
		}
		if took, want := time.Since(began), plan.RetryMax/10; took != want {
			t.Errorf("%d passes paused for %s, want %s", 2*spinLimit-1, took, want)
		}
		a.wait(nil, lookAgain())
		if took, want := time.Since(began), plan.RetryMax/5; took != want {
			t.Errorf("%d passes paused for %s, want %s", 2*spinLimit, took, want)
		}
	})
}
