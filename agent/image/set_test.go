package image

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Limits may change while a Collector runs, and count at once.
func TestBoundsChangeWhileItRuns(t *testing.T) {
	inYard(t, Limits{}, func(y *yard) {
		ctx, stop := context.WithCancel(y.Context())
		done := make(chan struct{})
		go func() {
			y.Collector.Run(ctx)
			close(done)
		}()
		y.add(30, "a", "b")
		time.Sleep(time.Hour)
		y.has("a", "b")
		y.SetBounds(Limits{High: 50, Low: 40})
		synctest.Wait()
		y.has("b")
		if b := y.Bounds(); b.High != 50 || b.MinAge != DefaultMinAge {
			y.Errorf("%+v", b)
		}
		stop()
		<-done
	})
}

func TestTheRateOfPullsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(1, 1)
		took := func(n int) time.Duration {
			started := time.Now()
			for range n {
				if err := l.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(started)
		}
		rows := []struct {
			qps, burst int
			want       time.Duration // for 5 pulls
		}{{1, 1, 4 * time.Second}, {2, 1, 2 * time.Second}, {0, 10, 0}, {1, 4, time.Second}, {1, 10, 0}}
		for _, r := range rows {
			if l.set(r.qps, r.burst); took(1) > 0 {
				t.Errorf("%+v: the first one waits", r)
			}
			l.set(r.qps, r.burst)
			if d := took(5); d != r.want {
				t.Errorf("%+v: %s", r, d)
			}
		}
	})
}
