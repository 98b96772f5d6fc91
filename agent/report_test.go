package agent

import (
	"testing"

	"monopod/agent/message"
	"monopod/agent/rollout"
)

// While it is only being found out what a version lacks, nothing is said of the one before it, which
// runs on for a moment.
func TestAVersionThatIsBeingPreparedIsNoTroubleOfItsFile(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		one := pending{Pending: rollout.Pending{Pod: r.sync.pods.of(podKey("web")).Offered, By: rollout.ByPreparing, Text: message.Fixed("it is prepared"), Quiet: true}, beside: true}
		if found := r.sync.tells.found([]pending{one}); len(found) > 0 {
			r.Errorf("it is told %+v", *found[one.Pod.File])
		}
		one.Quiet = false
		f := r.sync.tells.found([]pending{one})[one.Pod.File]
		if f == nil || !f.held || len(f.problems) != 1 || f.problems[0].Message != "it is prepared" {
			r.Errorf("what is worth a word is told as %+v", f)
		}
	})
}
