package backoff

import (
	"math"
	"testing"
	"time"
)

func TestAWaitIsTwiceTheOneBeforeUpToTheMost(t *testing.T) {
	for _, row := range []struct {
		failures    int
		first, most time.Duration
		want        time.Duration
	}{
		{1, First, Most, time.Second},
		{2, First, Most, 2 * time.Second},
		{6, First, Most, 32 * time.Second},
		{7, First, Most, time.Minute},
		{math.MaxInt, First, Most, time.Minute},
		{0, First, Most, time.Second}, // no failure is known of
		{3, 250 * time.Millisecond, 10 * time.Second, time.Second},
		{1, time.Minute, time.Second, time.Second},
		{math.MaxInt, time.Hour, math.MaxInt64 / 3, math.MaxInt64 / 3},
	} {
		if got := Between(row.first, row.most, row.failures); got != row.want {
			t.Errorf("after %d failures, from %s to %s: %s, want %s", row.failures, row.first, row.most, got, row.want)
		}
	}
	if got := After(5); got != 16*time.Second {
		t.Errorf("after 5 failures: %s", got)
	}
}
