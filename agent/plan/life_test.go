package plan_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
)

// A pod whose dead sandboxes the runtime does not remove gets no more of them.
func TestAPodHasTenSandboxesAtMost(t *testing.T) {
	removal := plan.Action{Do: plan.DoRemoveSandbox, ID: "s2"}.Key()
	for _, row := range []struct {
		sandboxes int
		fails     bool
		want      string
	}{
		{9, false, ""},
		{10, false, "the runtime does not remove the 10 sandboxes that the pod had"},
		{11, true, "the runtime does not remove the 11 sandboxes that the pod had: device busy"},
	} {
		here := &pleg.Instance{}
		for k := range row.sandboxes {
			here.Sandboxes = append(here.Sandboxes, pleg.Sandbox{ID: fmt.Sprint("s", k), Attempt: uint32(k), HostNetwork: true})
		}
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: here}.Facts()
		if row.fails {
			s.Failures = map[string]plan.Failure{removal: {Waiting: plan.Waiting{Reason: "FailedSync", Message: message.Fixed("device busy")}}}
		}
		if got := plan.Make(s).Waiting["a"].Message.String(); got != row.want {
			t.Errorf("%d sandboxes: %q, want %q", row.sandboxes, got, row.want)
		}
	}
}
