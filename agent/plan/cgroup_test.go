package plan_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
)

func TestPlanOfPodsWhoseCgroupIsGone(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	gone := func(s *plan.Facts) { s.CgroupGone = true }
	checkPlans(t, []row{
		{"the pod is stopped and made again", scene{Pod: pod(always, "a"), Accepted: true, Change: gone, Here: world(up("a", 0))},
			"stop container a a0 in 30s; stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"a Never pod that ran has failed", scene{Pod: pod(never, "a"), Accepted: true, Change: gone, Here: world(up("a", 0))},
			"record result Failed CgroupGone; stop container a a0 in 30s; stop sandbox s0"},
		{"work that is done stays done", scene{Pod: pod(never, "a"), Accepted: true, Change: gone, Here: world(exit("a", 0, 0, 0, ""))},
			"stop sandbox s0; end Succeeded"},
		{"a pod waits for the network before it is stopped", scene{Pod: pod(always, "a"), Accepted: true, Here: &pleg.Instance{
			Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.0.0.2"}}}, Containers: []pleg.Container{up("a", 0)}},
			Change: func(s *plan.Facts) {
				s.CgroupGone, s.NoNetwork, s.Pod.Spec.HostNetwork = true, "it is down", false
			}}, "|a waits: NetworkNotReady"},
	})
}
