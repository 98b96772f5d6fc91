package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/slots"
)

// runs says that an earlier plan began an action at something so long ago.
func runs(do plan.Action, ago time.Duration) func(*plan.Facts) {
	return func(s *plan.Facts) {
		s.Running = map[string]plan.Running{do.Key(): {Do: do.Do, UID: "u", ID: do.ID, Since: s.Now.Add(-ago)}}
	}
}

func TestPlanKeepsSandboxesAndWhatIsInThemApart(t *testing.T) {
	always := v1.RestartPolicyAlways
	// a0 ran in the dead s0; a1 ended and a2 runs in s1.
	renewed := func() *pleg.Instance {
		i := world(up("a", 2), exit("a", 1, 1, time.Hour, ""), exit("a", 0, 255, time.Hour, ""))
		i.Sandboxes = []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}}
		i.Containers[0].Sandbox, i.Containers[1].Sandbox = "s1", "s1"
		return i
	}
	emptied := renewed()
	emptied.Containers = emptied.Containers[:2]
	removal := plan.Action{Do: plan.DoRemoveContainer, ID: "a0"}
	two := world(exit("a", 0, 0, 0, ""))
	checkPlans(t, []row{
		{"a sandbox waits until the last container in it is removed", scene{Pod: pod(always, "a"), Accepted: true, Here: renewed()}, "remove container a a0|wake in 10s"},
		{"and is removed then", scene{Pod: pod(always, "a"), Accepted: true, Here: emptied}, "remove sandbox s0"},
		{"it waits for a removal of an earlier plan, too", scene{Pod: pod(always, "a"), Accepted: true, Here: renewed(), Change: runs(removal, 3*time.Second)}, "|wake in 7s"},
		{"but not for one that hangs", scene{Pod: pod(always, "a"), Accepted: true, Here: renewed(), Change: runs(removal, slots.HangsAfter)}, "remove sandbox s0"},
		{"a container waits while its sandbox is removed", scene{Pod: pod(always, "a"), Accepted: true, Here: renewed(), Change: runs(plan.Action{Do: plan.DoRemoveSandbox, ID: "s0"}, time.Second)}, "|wake in 9s"},
		{"so does one that stops", scene{Pod: pod(always, "a"), Accepted: true, Here: world(condemned(up("a", 0))), Change: runs(plan.Action{Do: plan.DoStopSandbox, ID: "s0"}, time.Second)}, "|wake in 9s"},
		{"one that was created", scene{Pod: pod(always, "a"), Accepted: true, Here: world(in(rt.ContainerState_CONTAINER_CREATED, "a")), Change: runs(plan.Action{Do: plan.DoStopSandbox, ID: "s0"}, time.Second)}, "|wake in 9s"},
		{"and one that is resized", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)),
			Change: all(follows(checkpoint.Following{Resize: []string{"a"}, Raised: true}), runs(plan.Action{Do: plan.DoStopSandbox, ID: "s0"}, time.Second))}, "|wake in 9s"},
		{"what follows waits with it", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: two, Change: runs(removal, 4*time.Second)}, "|wake in 6s"},
	})
}

func TestWhatAnObservationHas(t *testing.T) {
	s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(up("a", 0))}.Facts()
	for object, want := range map[string]bool{"u": true, "s0": true, "a0": true, "a1": false, "s1": false, "another": false, "a": false} {
		if got := s.Has(object); got != want {
			t.Errorf("Has(%q) is %v", object, got)
		}
	}
	s = scene{Pod: pod(v1.RestartPolicyAlways, "a")}.Facts()
	if !s.Has("u") {
		t.Error("a pod that is new is not there")
	}
	s = scene{Nothing: true}.Facts()
	if s.Has("u") {
		t.Error("a pod that is gone is there")
	}
}
