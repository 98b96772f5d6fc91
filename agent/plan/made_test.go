package plan_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/manifests"
)

func TestWhetherAContainerWasEverMade(t *testing.T) {
	p := pod(v1.RestartPolicyAlways, "a")
	running := func(key, uid string, makes bool) func(*plan.Facts) {
		return func(s *plan.Facts) { s.Running = map[string]plan.Running{key: {UID: uid, Makes: makes}} }
	}
	waits := plantest.Reported(p, "a#0 waits")
	waits.ContainerStatuses[0].ContainerID = ""
	restarted := waits.DeepCopy()
	restarted.ContainerStatuses[0].RestartCount = 1
	initialized := &v1.PodStatus{InitContainerStatuses: plantest.Reported(p, "a#0 exited").ContainerStatuses}
	for _, row := range []struct {
		name string
		scene
		last *v1.PodStatus
		want bool
	}{
		{"nothing is there", scene{}, nil, false},
		{"an empty sandbox is there", scene{Here: world()}, nil, false},
		{"a container is there", scene{Here: world(exit("a", 0, 1, 0, ""))}, nil, true},
		{"one is being made", scene{Change: running("a", "u", true)}, nil, true},
		{"one is being stopped", scene{Change: running("a", "u", false)}, nil, false},
		{"one of another pod is being made", scene{Change: running("a", "other", true)}, nil, false},
		{"a sandbox is being made", scene{Change: running(plan.SandboxFailure, "u", true)}, nil, false},
		{"one was reported", scene{}, plantest.Reported(p, "a#0 exited"), true},
		{"an init container was reported", scene{}, initialized, true},
		{"one was reported that waited for its first start", scene{}, waits, false},
		{"one was reported that had restarted", scene{}, restarted, true},
	} {
		row.Pod = p
		s := row.scene.Facts()
		if got := s.Made(row.last); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestWhatAPassIsFor(t *testing.T) {
	known := func(c scene) map[string]*checkpoint.Checkpoint {
		c.Pod, c.Accepted = pod(v1.RestartPolicyAlways, "a"), true
		return c.Facts().Known
	}
	desired := &manifests.Pod{Pod: pod(v1.RestartPolicyAlways, "a")}
	for _, row := range []struct {
		name    string
		desired *manifests.Pod
		known   map[string]*checkpoint.Checkpoint
		changed bool
		want    metrics.Operation
	}{
		{"no pod is wanted", nil, known(scene{}), false, metrics.Kill},
		{"it is new", desired, nil, true, metrics.Create},
		{"it goes", desired, known(scene{Retired: true}), true, metrics.Kill},
		{"it has ended", desired, known(scene{Ended: v1.PodFailed}), true, metrics.Terminated},
		{"it has changed", desired, known(scene{}), true, metrics.Update},
		{"it has not", desired, known(scene{}), false, metrics.Sync},
	} {
		if got := plan.OperationOf(row.desired, row.known, row.changed); got != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
}

func TestWhetherARegularContainerWasMade(t *testing.T) {
	p := withInit(pod(v1.RestartPolicyAlways, "a"), "i")
	former := world(up("a", 0))
	former.Sandboxes[0].ID = "s1"
	none := world(up("a", 0))
	none.Sandboxes = nil
	for name, row := range map[string]struct {
		scene
		want bool
	}{
		"nothing is there":                   {scene{}, false},
		"an init container is there":         {scene{Here: world(up("i", 0))}, false},
		"a regular one is there":             {scene{Here: world(exit("a", 0, 1, 0, ""))}, true},
		"one is there of another sandbox":    {scene{Here: former}, false},
		"one is there, and no sandbox of it": {scene{Here: none}, false},
	} {
		row.Pod = p
		s := row.scene.Facts()
		if got := plan.RegularMade(p, s.Instance()); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
