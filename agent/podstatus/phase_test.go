package podstatus_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
)

func TestReadinessInTheStatus(t *testing.T) {
	well := probe.Results{Started: true, Ready: true}
	row := func(name string, p *v1.Pod, probes map[string]probe.Results, started, ready bool, message string) {
		t.Run(name, func(t *testing.T) {
			s := scene{Pod: p, Accepted: true, Here: world(up("a", 0), up("b", 0))}.Situation()
			s.Probes = probes
			st := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil)
			c := st.ContainerStatuses[0]
			if *c.Started != started || c.Ready != ready {
				t.Errorf("started %v, ready %v", *c.Started, c.Ready)
			}
			for _, cond := range st.Conditions {
				if (cond.Type == v1.PodReady || cond.Type == v1.ContainersReady) && (cond.Message != message || (cond.Status == v1.ConditionTrue) != ready) {
					t.Errorf("%s is %s: %q, want %q", cond.Type, cond.Status, cond.Message, message)
				}
			}
		})
	}
	two := func() *v1.Pod { return probed(pod(v1.RestartPolicyAlways, "a", "b"), "a") }
	row("without probes it is ready at once", pod(v1.RestartPolicyAlways, "a", "b"), nil, true, true, "")
	row("before its probes begin it is not started", two(), nil, false, false, "containers with unready status: [a]")
	row("with probes that succeed it is ready", two(), map[string]probe.Results{"a0": well}, true, true, "")
	row("a startup probe that fails says why", two(), map[string]probe.Results{"a0": {Text: "Startup probe failed: x"}}, false, false,
		"containers with unready status: [a]: Startup probe failed: x")
	row("a readiness probe that fails says why", two(), map[string]probe.Results{"a0": {Started: true, Text: "Readiness probe failed: x"}}, true, false,
		"containers with unready status: [a]: Readiness probe failed: x")
	row("two that fail say who", probed(two(), "b"), map[string]probe.Results{"a0": {Text: "Startup probe failed: x"}, "b0": {Text: "Readiness probe failed: y"}}, false, false,
		"containers with unready status: [a b]: a: Startup probe failed: x; b: Readiness probe failed: y")
}

func TestAPodIsInitializedOnceItsSidecarHasStarted(t *testing.T) {
	s := scene{Pod: probed(withSidecar(pod(v1.RestartPolicyAlways, "a"), "s"), "s"), Accepted: true, Here: world(up("s", 0))}.Situation()
	for _, started := range []bool{false, true} {
		s.Probes = map[string]probe.Results{"s0": {Started: started}}
		st := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil)
		if st.Phase != v1.PodPending || conditionOf(st, v1.PodInitialized) != started {
			t.Errorf("started %v: phase %s, initialized %v", started, st.Phase, conditionOf(st, v1.PodInitialized))
		}
	}
}

func conditionOf(st v1.PodStatus, kind v1.PodConditionType) bool {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
