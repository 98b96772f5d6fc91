package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
)

// What was prepared of a version says that it is accepted, as soon as the one before is marked as
// going: it starts whether the disk takes more or not.
func TestAVersionStartsThatWasPreparedOnDisk(t *testing.T) {
	later := plantest.Noon.Add(time.Minute)
	ofAccept := plan.Action{Do: plan.DoAccept, UID: "u", Beside: true}.Key()
	for _, row := range []struct {
		name     string
		change   func(c *checkpoint.Checkpoint)
		failures map[string]plan.Failure
		want     string
	}{
		{"it was prepared", func(c *checkpoint.Checkpoint) { c.Next = true }, nil,
			"accept; set up; create sandbox#0; start container a#0"},
		{"it was prepared, and the disk takes no more", func(c *checkpoint.Checkpoint) { c.Next = true }, map[string]plan.Failure{ofAccept: {Retry: later}},
			"set up; create sandbox#0; start container a#0|wake in 1m0s"},
		{"it is not on disk, which takes no more", func(c *checkpoint.Checkpoint) { c.Unwritten = true }, map[string]plan.Failure{plan.SandboxFailure: {Retry: later}}, "|wake in 1m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Failures: row.failures}.Facts()
			row.change(s.Known["u"])
			if got := told(plan.Make(s)); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}
