package agent

import (
	"testing"
	"time"
)

func TestTheSyncLoopIsHealthyWhateverTheClockSays(t *testing.T) {
	live(t, func(r *rig) {
		r.after(time.Hour)
		if err := r.sync.healthy(); err != nil {
			t.Error(err)
		}
		r.stop()
		r.after(2 * time.Minute)
		if err := r.sync.healthy(); err == nil {
			t.Error("one that does not turn is healthy")
		}
		r.stop = func() {}
	})
}
