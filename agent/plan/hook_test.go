package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
)

func TestPlanOfHooks(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	checkPlans(t, []row{
		// The order of starts.
		{"a container with a hook holds those after it back, not those before it", scene{Pod: hookedBy(pod(always, "a", "b", "c"), "b")},
			"accept; set up; create sandbox#0; start container a#0, start container b#0|c waits: ContainerCreating"},
		{"while the hook runs they wait", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 0)), Change: posted("a0", plan.HookState{})},
			"|b waits: ContainerCreating"},
		{"when it is done they start", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 0)), Change: posted("a0", plan.HookState{Done: true})},
			"start container b#0"},
		{"when it has failed they start too", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 0)), Change: posted("a0", plan.HookState{Failed: "no"})},
			"record kill decision a a0 in 30s; stop container a a0 in 30s; start container b#0"},
		{"one that waits for its image holds back those after it", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(), Fetching: map[string]plan.Pull{"a": {Image: "img:1", Since: noon}}},
			"|a waits: ContainerCreating|b waits: ContainerCreating|wake in 10s"},
		{"one that has no image does not", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(), Failures: map[string]plan.Failure{"a": {Waiting: plan.Waiting{Reason: "ErrImagePull"}, Retry: noon.Add(time.Second)}}},
			"start container b#0|a waits: ErrImagePull|wake in 1s"},
		{"one in back-off does not", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(exit("a", 1, 1, 0, "0s"))},
			"start container b#0|a waits: CrashLoopBackOff|wake in 10s"},
		{"a crashed container does not wait for another's hook", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 0), exit("b", 0, 1, 0, "")), Change: posted("a0", plan.HookState{})},
			"start container b#1 after 0s"},
		{"nor does one that runs already", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 1), up("b", 0)), Change: posted("a1", plan.HookState{})}, ""},
		{"in a new sandbox they wait again", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: dead(world(exit("a", 0, 255, 0, ""), exit("b", 0, 255, 0, "")))},
			"stop sandbox s0; set up; create sandbox#1; start container a#1|b waits: ContainerCreating"},
		{"one that cannot start yet does not hold the others there", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Failures: map[string]plan.Failure{"a": {Retry: noon.Add(time.Second)}}},
			"set up; create sandbox#0; start container b#0|wake in 1s"},
		{"a sidecar's hook holds the next init container back", scene{Pod: withInit(hookedBy(withSidecar(pod(always, "a"), "s"), "s"), "i"), Accepted: true, Here: world(up("s", 0)), Change: posted("s0", plan.HookState{})}, ""},
		{"which starts when it is done", scene{Pod: withInit(hookedBy(withSidecar(pod(always, "a"), "s"), "s"), "i"), Accepted: true, Here: world(up("s", 0)), Change: posted("s0", plan.HookState{Done: true})},
			"start container i#0"},
		{"a last sidecar's hook holds the regular ones back", scene{Pod: hookedBy(withSidecar(pod(always, "a"), "s"), "s"), Accepted: true, Here: world(up("s", 0)), Change: posted("s0", plan.HookState{})}, ""},

		// Running them.
		{"a container that runs gets its hook", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(up("a", 0))}, "run postStart a a0"},
		{"a hook that a former agent did not end is run again", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(up("a", 1)), Change: noted("a", "a0")}, "run postStart a a1"},
		{"a hook that a former agent has run is not", scene{Pod: hookedBy(pod(always, "a", "b"), "a"), Accepted: true, Here: world(up("a", 0)), Change: noted("a", "a0")}, "start container b#0"},
		{"a container that has exited gets none", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s"},
		{"a pod that is removed gets none", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Nothing: true, Here: world(up("a", 0))},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},

		// Failing.
		{"a container whose hook has failed is stopped, with its preStop hook", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(preStops(up("a", 0))), Change: posted("a0", plan.HookState{Failed: "no"})},
			"record kill decision a a0 in 30s; stop container a a0 in 30s with preStop"},
		{"and not stopped twice", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(condemned(up("a", 0))), Change: all(posted("a0", plan.HookState{Failed: "no"}), stops(map[string]plan.Stopping{"a0": {}}))}, ""},
		{"a sidecar's failed hook stops the sidecar only", scene{Pod: hookedBy(withSidecar(pod(always, "a"), "s"), "s"), Accepted: true, Here: world(up("a", 0), up("s", 1)), Change: posted("s1", plan.HookState{Failed: "no"})},
			"record kill decision s s1 in 30s; stop container s s1 in 30s"},
		{"it is restarted even if it answers with 0", scene{Pod: hookedBy(pod(v1.RestartPolicyOnFailure, "a"), "a"), Accepted: true, Here: world(condemned(exit("a", 0, 0, 0, "")))}, "start container a#1 after 0s"},
		{"its successor starts with back-off", scene{Pod: hookedBy(pod(always, "a"), "a"), Accepted: true, Here: world(exit("a", 1, 137, 0, "0s"))}, "|a waits: CrashLoopBackOff|wake in 10s"},
		{"under Never there is none", scene{Pod: hookedBy(pod(never, "a"), "a"), Accepted: true, Here: world(exit("a", 0, 137, 0, ""))}, "stop sandbox s0; end Failed"},
	})
}

func TestAContainerWhoseHookRunsWaits(t *testing.T) {
	for failed, want := range map[string]string{"": "ContainerCreating: ", "no such file": "PostStartHookError: no such file"} {
		s := scene{Pod: hookedBy(pod(v1.RestartPolicyAlways, "a"), "a"), Accepted: true, Here: world(up("a", 0)), Change: posted("a0", plan.HookState{Failed: failed})}.Facts()
		w := s.HookWait(s.Instance().Newest("a"))
		if got := w.Reason + ": " + w.Message.String(); got != want {
			t.Errorf("failed %q: %s", failed, got)
		}
	}
}
