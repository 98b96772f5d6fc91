package plan_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
)

func TestPlanOfEndedPodsVolumes(t *testing.T) {
	never, always := v1.RestartPolicyNever, v1.RestartPolicyAlways
	have := func(s *plan.Facts) { s.Volumes = true }
	checkPlans(t, []row{
		{"an ended pod gives its volumes back", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodFailed, Change: have,
			Here: dead(world(exit("a", 0, 1, 0, "")))}, "remove volumes"},
		{"but not before nothing of it lives", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodFailed, Change: have,
			Here: world(up("a", 0))}, "stop container a a0 in 30s; stop sandbox s0; remove volumes"},
		{"and not before its end is recorded", scene{Pod: pod(never, "a"), Accepted: true, Change: have,
			Here: dead(world(exit("a", 0, 1, 0, "")))}, "stop sandbox s0; end Failed"},
		{"a pod that runs keeps them", scene{Pod: pod(always, "a"), Accepted: true, Change: have, Here: world(up("a", 0))}, ""},
	})
}
