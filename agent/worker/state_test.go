package worker

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
)

// A version on trial is not blamed for a disk that takes nothing of it.
func TestAVersionWaitsForTheDiskAsLongAsNothingOfItWasMade(t *testing.T) {
	for _, row := range []struct {
		name             string
		isDisk, isUnmade bool
		waits            bool
	}{
		{"the disk takes nothing", true, true, true},
		{"its sandbox cannot be made for another reason", false, true, false},
		{"its containers run already", true, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			failures := map[string]plan.Failure{plan.SandboxFailure: {IsDisk: row.isDisk}}
			s := plantest.Scene{Pod: plantest.Pod(v1.RestartPolicyAlways, "a"), Accepted: true, Failures: failures}.Facts()
			h := health(&s, &v1.PodStatus{}, false, row.isUnmade)
			if !h.Seen || h.Waits != row.waits {
				t.Errorf("%+v", h)
			}
		})
	}
}
