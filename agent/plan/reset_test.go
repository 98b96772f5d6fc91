package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// resetBy gives a container the rule that its exit with 42 restarts all.
func resetBy(p *v1.Pod, name string) *v1.Pod {
	for _, c := range podspec.AllContainers(p) {
		if c.Name == name {
			c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
			c.RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
		}
	}
	return p
}

// resetAlways is a pod that always restarts, whose first container has that rule, too.
func resetAlways(names ...string) *v1.Pod {
	p := resetBy(pod(v1.RestartPolicyAlways, names...), names[0])
	p.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return p
}

// requested is a container that is stopped by a restart request.
func requested(c pleg.Container) pleg.Container {
	return plantest.With(killedFor(checkpoint.CauseRequest, c), func(c *pleg.Container) { c.Kill.Requested = true })
}

func markedAs(marks map[string]string) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Known["u"] = s.Known["u"].WithMarks(marks) }
}

func TestPlanOfResets(t *testing.T) {
	never := v1.RestartPolicyNever
	p := func() *v1.Pod { return resetBy(withSidecar(withInit(pod(never, "a", "b"), "i"), "s"), "a") }
	wait := "|a waits: RestartingAllContainers|b waits: RestartingAllContainers|i waits: RestartingAllContainers|s waits: RestartingAllContainers"
	checkPlans(t, []row{
		{"a rule stops all at once, and removes the one that asked last", scene{Pod: p(), Accepted: true, Here: world(exit("i", 0, 0, time.Hour, ""), preStops(up("s", 0)), exit("a", 0, 42, 0, ""), up("b", 0))},
			"mark map[a:0s]; stop container b b0 in 2s, stop container s s0 in 2s; remove container b b0; remove container i i0, remove container s s0; remove container a a0" + wait},
		{"another exit code does not", scene{Pod: p(), Accepted: true, Here: world(exit("i", 0, 0, time.Hour, ""), up("s", 0), exit("a", 0, 41, 0, ""), up("b", 0))}, ""},
		{"a second time it waits, and the others run on", scene{Pod: p(), Accepted: true, Here: world(exit("i", 0, 0, time.Hour, ""), up("s", 0), exit("a", 1, 42, 0, "0s"), up("b", 0))},
			"|a waits: CrashLoopBackOff|wake in 10s"},
		{"a former agent's reset goes on", scene{Pod: p(), Accepted: true, Here: world(exit("a", 0, 42, time.Minute, "")), Change: markedAs(map[string]string{"a": "0s"})},
			"remove container a a0" + wait},
		{"then the pod begins again, counting on", scene{Pod: p(), Accepted: true, Here: world(), Logged: map[string]uint32{"i": 1, "a": 1}, Change: markedAs(map[string]string{"a": "0s"})},
			"start container i#1"},
		{"the one that asked is marked with its back-off", scene{Pod: resetBy(pod(never, "a"), "a"), Accepted: true, Here: world(), Logged: map[string]uint32{"a": 2}, Change: markedAs(map[string]string{"a": "10s"})},
			"start container a#2 after 10s"},
		{"an init container may ask too", scene{Pod: resetBy(withSidecar(withInit(pod(never, "a"), "i"), "s"), "i"), Accepted: true, Here: world(exit("i", 0, 42, 0, ""))},
			"mark map[i:0s]; remove container i i0|a waits: RestartingAllContainers|i waits: RestartingAllContainers|s waits: RestartingAllContainers"},
		{"one that is stopped to start again asks for nothing", scene{Pod: resetBy(pod(never, "a", "b"), "a"), Accepted: true, Here: world(requested(exit("a", 0, 42, 0, "")), up("b", 0))},
			"start container a#1"},
		{"nor does one whose probe failed, if it restarts", scene{Pod: resetAlways("a", "b"), Accepted: true, Here: world(killedFor(checkpoint.CauseProbe, exit("a", 0, 42, 0, "")), up("b", 0))},
			"start container a#1 after 0s"},
		{"nor if it does not", scene{Pod: resetBy(pod(never, "a", "b"), "a"), Accepted: true, Here: world(killedFor(checkpoint.CauseProbe, exit("a", 0, 42, 0, "")), up("b", 0))}, ""},
		{"an exit in a former sandbox asks for nothing", scene{Pod: resetBy(pod(never, "a", "b"), "a"), Accepted: true, Here: &pleg.Instance{
			Sandboxes:  []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}},
			Containers: []pleg.Container{exit("a", 0, 42, time.Hour, ""), {ID: "b1", Name: "b", Sandbox: "s1", Attempt: 1, State: 1}}}}, "start container a#1"},
	})
}

func TestWhetherAPodMayRestartAsAWhole(t *testing.T) {
	alone := resetBy(pod(v1.RestartPolicyNever, "a"), "a")
	alone.Spec.Containers[0].RestartPolicyRules[0].Action = v1.ContainerRestartRuleActionRestart
	for name, row := range map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"it has no rules":                  {pod(v1.RestartPolicyNever, "a"), false},
		"a rule restarts a container":      {alone, false},
		"a rule restarts all":              {resetBy(pod(v1.RestartPolicyNever, "a"), "a"), true},
		"a rule of an init container does": {resetBy(withInit(pod(v1.RestartPolicyNever, "a"), "i"), "i"), true},
	} {
		if got := plan.CanReset(row.pod); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
