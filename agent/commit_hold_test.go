package agent

import (
	"testing"
	"time"

	"monopod/agent/config"
)

// The disk does not take that another version replaces the one that runs, and takes it once the pod is held.
func TestAHoldKeepsAnUpdateThatTheDiskDidNotTake(t *testing.T) {
	for _, held := range []string{"web", ""} {
		live(t, func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.after(time.Minute)
			release := r.cannotBeMarked()
			r.want(other("img:2"))
			r.after(10 * time.Minute)
			r.recordWaits()
			r.holds(held, "audit", "")
			release()
			r.stopsNothing(func() { r.after(10 * time.Minute) })
			r.updateWaits("held: audit")
			r.releases(held)
			r.after(time.Minute)
			r.replaced("img:2")
		})
	}
}

// So it is when the window closes.
func TestAWindowThatClosesKeepsAnUpdateThatTheDiskDidNotTake(t *testing.T) {
	liveWith(t, func(r *rig) {
		clockIsSet(r)
		r.configure = func(c *config.Config) {
			c.UpdateWindow = time.Now().Add(-time.Minute).Format("15:04") + "-" + time.Now().Add(20*time.Minute).Format("15:04")
		}
	}, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		release := r.cannotBeMarked()
		r.want(other("img:2"))
		r.after(10 * time.Minute)
		r.recordWaits()
		r.after(15 * time.Minute)
		release()
		r.after(10 * time.Minute)
		r.updateWaits("outside of the update window")
	})
}
