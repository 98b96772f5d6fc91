package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
)

func TestPlanOfPodsWithoutNetwork(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	down := func(s *plan.Facts) { s.NoNetwork = "it is down" }
	own := func(p *v1.Pod) *v1.Pod {
		p.Spec.HostNetwork = false
		return p
	}
	here := func(cs ...pleg.Container) *pleg.Instance {
		return &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.0.0.2"}}}, Containers: cs}
	}
	checkPlans(t, []row{
		{"a new pod is accepted and waits", scene{Pod: own(withInit(pod(always, "a", "b"), "i")), Change: down},
			"accept|a waits: NetworkNotReady|b waits: NetworkNotReady|i waits: NetworkNotReady"},
		{"a pod with the host's network does not", scene{Pod: pod(always, "a"), Accepted: true, Change: down},
			"set up; create sandbox#0; start container a#0"},
		{"a pod that runs is left alone", scene{Pod: own(pod(always, "a", "b")), Accepted: true, Change: down, Here: here(up("a", 0), exit("b", 0, 1, 0, ""))},
			"start container b#1 after 0s"},
		{"a dead sandbox waits for its successor", scene{Pod: own(pod(always, "a")), Accepted: true, Change: down, Here: dead(here(exit("a", 0, 255, 0, "")))},
			"|a waits: NetworkNotReady"},
		{"a failure to make one does not count", scene{Pod: own(pod(always, "a")), Accepted: true, Change: down,
			Failures: map[string]plan.Failure{"": {Retry: noon.Add(time.Second)}}}, "|a waits: NetworkNotReady"},
		{"a pod that ends does not wait", scene{Pod: own(pod(never, "a")), Accepted: true, Change: down, Here: dead(here(exit("a", 0, 0, 0, "")))},
			"stop sandbox s0; end Succeeded"},
	})
}

func TestAPlanSaysThatAPodWaitsForTheNetwork(t *testing.T) {
	var p plan.Plan
	p.Wait("a", plan.Waiting{Reason: plan.CrashLoop})
	if w, waits := p.NetworkWait(); waits {
		t.Errorf("it waits for the network: %+v", w)
	}
	p.Wait("b", plan.Waiting{Reason: plan.NetworkNotReady})
	if w, waits := p.NetworkWait(); !waits || w.Reason != plan.NetworkNotReady {
		t.Errorf("it does not wait for the network: %+v", w)
	}
}
