package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
)

func TestPlanOfStops(t *testing.T) {
	always := v1.RestartPolicyAlways
	two := func() *v1.Pod { return withSidecar(withSidecar(pod(always, "a"), "s1"), "s2") }
	running, unknown := world(up("a", 0)), rt.ContainerState_CONTAINER_UNKNOWN
	checkPlans(t, []row{
		// Order.
		{"a sidecar waits for those that run only", scene{Pod: two(), Nothing: true, Accepted: true, Retired: true, Here: world(exit("a", 0, 0, 0, ""), up("s1", 0), up("s2", 0))},
			"stop container s1 s10 in 30s behind s20, stop container s2 s20 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"an init container that runs waits for nothing, and nothing for it", scene{Pod: withInit(withSidecar(pod(always, "a"), "s"), "i"), Nothing: true, Accepted: true, Retired: true, Here: world(up("i", 0), up("s", 0))},
			"stop container i i0 in 30s, stop container s s0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"without a checkpoint nobody waits, but hooks run", scene{Pod: two(), Nothing: true, Here: world(preStops(up("a", 0)), up("s1", 0))},
			"stop container a a0 in 30s with preStop, stop container s1 s10 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"what the runtime has lost track of is stopped too", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: world(in(unknown, "a"))},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},

		// Grace.
		{"a removal goes on with the grace that is left", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: running, Change: deleted(12 * time.Second)},
			"stop container a a0 in 18s; stop sandbox s0; remove sandbox s0; forget"},
		{"and with two seconds when none is left", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: world(preStops(up("a", 0))), Change: deleted(time.Hour)},
			"stop container a a0 in 2s; stop sandbox s0; remove sandbox s0; forget"},
		{"its hook runs again while some is left", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: world(preStops(up("a", 0))), Change: deleted(29 * time.Second)},
			"stop container a a0 in 2s with preStop; stop sandbox s0; remove sandbox s0; forget"},
		{"a clock set back gives no more than the grace", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: running, Change: deleted(-24 * time.Hour)},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"without grace a hook has a second", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: world(graced(preStops(up("a", 0)), 0))},
			"stop container a a0 in 2s with preStop; stop sandbox s0; remove sandbox s0; forget"},

		// While a stop is under way.
		{"what is being stopped is waited for", scene{Pod: pod(always, "a", "b"), Nothing: true, Accepted: true, Retired: true, Here: world(up("a", 0), up("b", 0)),
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true}, "b0": {Whole: true}})}, ""},
		{"what is not yet is stopped meanwhile", scene{Pod: pod(always, "a", "b"), Nothing: true, Accepted: true, Retired: true, Here: world(up("a", 0), up("b", 0)),
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true}})}, "stop container b b0 in 30s"},
		{"the last one down lets the sandbox go", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: world(exit("a", 0, 0, 0, "")),
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true}})}, "stop sandbox s0; remove sandbox s0; forget"},
		{"a stop that went wrong is tried again", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: running,
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true, Retry: noon.Add(time.Second)}})}, "|wake in 1s"},
		{"a container that cannot be stopped goes with its sandbox when its grace is over", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: running,
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true, Late: true, Retry: noon.Add(time.Second)}})}, "stop sandbox s0; remove sandbox s0; forget|wake in 1s"},
		{"the stop of one container makes way for that of the pod", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: running,
			Change: stops(map[string]plan.Stopping{"a0": {}})}, "stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"the stop of one container keeps no other from starting", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(in(unknown, "a"), exit("b", 0, 1, 0, "")),
			Change: stops(map[string]plan.Stopping{"a0": {}})}, "start container b#1 after 0s"},
		{"a new sandbox waits until the old one's containers are down", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(up("a", 0))),
			Change: stops(map[string]plan.Stopping{"a0": {Whole: true}})}, ""},
		{"an end waits too", scene{Pod: withSidecar(pod(v1.RestartPolicyNever, "a"), "s"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), up("s", 0)),
			Change: all(func(s *plan.Facts) { s.Known["u"] = s.Known["u"].WithResult(checkpoint.Result{Phase: v1.PodSucceeded}) }, stops(map[string]plan.Stopping{"s0": {Whole: true}}))}, ""},
	})
}
