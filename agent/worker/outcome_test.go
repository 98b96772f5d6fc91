package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"monopod/agent/plan"
)

// What fails with two texts in turn is logged with a back-off, as is a sync; once it has succeeded
// the next failure is logged at once.
func TestAnActionThatFailsWithTextsInTurnIsLoggedEverMoreRarely(t *testing.T) {
	bubble(t, func(r *rig) {
		s, a := &plan.Facts{Pod: r.web("img:1")}, plan.Action{Do: plan.DoStartContainer, UID: "u", Name: "c"}
		lines := func() int { return strings.Count(r.log.String(), " failed") }
		for k := range 360 {
			r.recordFailed(s, a, fmt.Errorf("device %d is busy", k%2))
			time.Sleep(10 * time.Second)
		}
		if n := lines(); n < 12 || n > 30 {
			r.Errorf("%d lines in an hour", n)
		}
		before := lines()
		r.recordDone(s, a, nil)
		r.recordFailed(s, a, fmt.Errorf("device 1 is busy"))
		if n := lines() - before; n != 1 {
			r.Errorf("after a success a failure is logged %d times", n)
		}
	})
}
