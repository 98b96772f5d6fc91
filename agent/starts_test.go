package agent

import (
	"testing"
	"time"

	"monopod/agent/status"
)

// A reported pod says when its container that crashes starts again, and it does then.
func TestAPodSaysWhenItsContainerStartsAgain(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.Exit("default/web-n/c", 1) // the first crash has no back-off
		r.after(time.Second)
		for range 2 {
			r.Exit("default/web-n/c", 1)
			r.after(time.Second)
			next := status.StartsOf(r.pod("default/web-n"))
			left := time.Until(next["c"])
			if len(next) != 1 || left <= 0 || left > 5*time.Minute {
				r.Fatalf("it starts again in %s, %v", left, next)
			}
			made := r.made()
			r.after(left - time.Second)
			if r.made() != made {
				r.Errorf("it starts before %s", next["c"])
			}
			r.after(2 * time.Second)
			if r.made() != made+2 {
				r.Errorf("it does not start at %s", next["c"])
			}
			if next := status.StartsOf(r.pod("default/web-n")); next != nil {
				r.Errorf("it runs, and is to start at %v", next)
			}
		}
	})
}
