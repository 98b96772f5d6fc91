package defaults

import (
	"math"
	"testing"
	"time"
)

func TestSecondsOfAManifestAreNoLessThanTheySay(t *testing.T) {
	for s, want := range map[int64]time.Duration{-1: 0, 0: 0, 30: 30 * time.Second, math.MaxInt32: math.MaxInt32 * time.Second, math.MaxInt64 / 1_000_000_000: forever, math.MaxInt64/1_000_000_000 + 1: forever, math.MaxInt64: forever} {
		if got := Seconds(s); got != want {
			t.Errorf("%d: %s, want %s", s, got, want)
		}
	}
}
