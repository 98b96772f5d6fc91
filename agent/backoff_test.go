package agent

import (
	"testing"
	"time"

	"monopod/agent/config"
)

// The back-off is derived from the runtime's history, so a maximum that was
// lowered counts for a container that waits, once the agent knows of it.
func TestALoweredMaximumEndsAWaitAtTheNextStart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		for range 4 { // each waits longer than the one before: 0, 10, 20, 40 s
			r.Exit("c", 1)
			r.after(time.Minute)
		}
		r.Exit("c", 1)
		r.after(10 * time.Second)
		r.expect()
		r.stop()
		r.configure = func(c *config.Config) { c.BackOffMax = 15 * time.Second }
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(4 * time.Second)
		r.expect()
		r.after(2 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestAPodHasItsOwnBackOff(t *testing.T) {
	live(t, func(r *rig) {
		r.want("apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {monopod.backoff-first: 1s, monopod.backoff-max: 1s}}\nspec: {containers: [{name: c, image: 'img:1'}]}\n")
		for range 6 {
			r.Exit("c", 1)
			r.after(1100 * time.Millisecond)
			r.expect("default/web-n/c")
		}
	})
}
