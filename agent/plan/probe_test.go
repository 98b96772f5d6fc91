package plan_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/probe"
)

func TestPlanOfProbedPods(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	dead := probe.Results{Started: true, Ready: true, Failed: probe.Liveness, Why: "Liveness probe failed: x"}
	stillborn := probe.Results{Failed: probe.Startup, Why: "Startup probe failed: x"}
	grace := func(p *v1.Pod, s int64) *v1.Pod {
		p.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds = &s
		return p
	}
	own := func(p *v1.Pod, policy v1.ContainerRestartPolicy, rules ...v1.ContainerRestartRule) *v1.Pod {
		p.Spec.Containers[0].RestartPolicy, p.Spec.Containers[0].RestartPolicyRules = &policy, rules
		return p
	}
	onZero := v1.ContainerRestartRule{Action: v1.ContainerRestartRuleActionRestart,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{0}}}
	type results map[string]probe.Results
	for _, row := range []struct {
		name string
		scene
		probes results
		want   string
	}{
		// Kills.
		{"a container whose liveness probe failed is condemned, then stopped", scene{Pod: probed(pod(always, "a"), "a"), Here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"so is one whose startup probe failed", scene{Pod: probed(pod(always, "a"), "a"), Here: world(up("a", 0))}, results{"a0": stillborn},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"the probe's grace wins over the pod's", scene{Pod: grace(probed(pod(always, "a"), "a"), 90), Here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 1m30s; stop container a a0 in 1m30s"},
		{"but one probe's grace is not another's", scene{Pod: grace(probed(pod(always, "a"), "a"), 90), Here: world(up("a", 0))}, results{"a0": stillborn},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"a probe's grace below two seconds is two seconds", scene{Pod: grace(probed(pod(always, "a"), "a"), 1), Here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 1s; stop container a a0 in 2s"},
		{"under Never it is stopped too", scene{Pod: probed(pod(never, "a"), "a"), Here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"two at a time are stopped together", scene{Pod: probed(probed(pod(always, "a", "b"), "a"), "b"), Here: world(up("a", 0), up("b", 0))}, results{"a0": dead, "b0": stillborn},
			"record kill decision a a0 in 30s; record kill decision b b0 in 30s; stop container a a0 in 30s, stop container b b0 in 30s"},
		{"what can start does not wait for a stop", scene{Pod: probed(pod(always, "a", "b"), "a"), Here: world(up("a", 0), exit("b", 0, 1, 0, ""))}, results{"a0": dead},
			"start container b#1 after 0s; record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"the attempt before does not count", scene{Pod: probed(pod(always, "a"), "a"), Here: world(exit("a", 0, 1, 0, ""), up("a", 1))}, results{"a0": dead}, ""},

		// What is left alone.
		{"one that is not started yet is left alone", scene{Pod: probed(pod(always, "a"), "a"), Here: world(up("a", 0))}, results{"a0": {}}, ""},
		{"one that is not ready is left alone", scene{Pod: probed(pod(always, "a"), "a"), Here: world(up("a", 0))}, results{"a0": {Started: true, Text: "x"}}, ""},
		{"one that is well is left alone", scene{Pod: probed(pod(always, "a"), "a"), Here: world(up("a", 0))}, results{"a0": {Started: true, Ready: true}}, ""},

		// After an agent that died.
		{"a condemned one that lives is stopped with the grace that it was to get", scene{Pod: probed(pod(always, "a"), "a"), Here: world(condemned(up("a", 0)))}, nil,
			"stop container a a0 in 7s"},
		{"whatever its probes say now", scene{Pod: probed(pod(always, "a"), "a"), Here: world(condemned(up("a", 0)))}, results{"a0": {Started: true, Ready: true}},
			"stop container a a0 in 7s"},
		{"a condemned one that is dead is started again", scene{Pod: probed(pod(always, "a"), "a"), Here: world(condemned(exit("a", 0, 137, 0, "")))}, nil,
			"start container a#1 after 0s"},

		{"its hook runs within the grace of the probe, though the pod has none", scene{Pod: grace(probed(pod(always, "a"), "a"), 20), Here: world(graced(preStops(up("a", 0)), 0))}, results{"a0": dead},
			"record kill decision a a0 in 20s; stop container a a0 in 20s with preStop"},
		{"also if the kill decision is of an agent before", scene{Pod: probed(pod(always, "a"), "a"), Here: world(condemned(graced(preStops(up("a", 0)), 0)))}, nil,
			"stop container a a0 in 7s with preStop"},
		{"nor does another version keep it from running, though the pod has no grace", scene{Pod: pod(always, "a"), Here: world(with(graced(preStops(up("a", 0)), 0), func(c *pleg.Container) {
			c.Kill = &checkpoint.KillDecision{Cause: checkpoint.CauseUpdate, Reason: "x", Requested: true}
		}))}, nil, "stop container a a0 in 2s with preStop"},
		{"without any grace it does not run", scene{Pod: probed(pod(always, "a"), "a"), Here: world(graced(preStops(up("a", 0)), 0))}, results{"a0": dead},
			"record kill decision a a0; stop container a a0 in 2s"},

		// Restarts.
		{"after exit code 0 under OnFailure it is started again", scene{Pod: probed(pod(onFailure, "a"), "a"), Here: world(condemned(exit("a", 0, 0, 0, "")))}, nil,
			"start container a#1 after 0s"},
		{"with the back-off of a crash", scene{Pod: probed(pod(onFailure, "a"), "a"), Here: world(condemned(exit("a", 1, 0, 0, "0s")))}, nil,
			"|a waits: CrashLoopBackOff|wake in 10s"},
		{"under Never it is not, and has failed", scene{Pod: probed(pod(never, "a"), "a"), Here: world(condemned(exit("a", 0, 143, 0, "")))}, nil,
			"stop sandbox s0; end Failed"},
		{"under Never it has succeeded if it says so", scene{Pod: probed(pod(never, "a"), "a"), Here: world(condemned(exit("a", 0, 0, 0, "")))}, nil,
			"stop sandbox s0; end Succeeded"},
		{"its own policy wins over Never", scene{Pod: own(probed(pod(never, "a"), "a"), v1.ContainerRestartPolicyOnFailure), Here: world(condemned(exit("a", 0, 0, 0, "")))}, nil,
			"start container a#1 after 0s"},
		{"its own Never wins over Always", scene{Pod: own(probed(pod(always, "a"), "a"), v1.ContainerRestartPolicyNever), Here: world(condemned(exit("a", 0, 1, 0, "")))}, nil,
			"stop sandbox s0; end Failed"},
		{"rules are not asked", scene{Pod: own(probed(pod(always, "a"), "a"), v1.ContainerRestartPolicyNever, onZero), Here: world(condemned(exit("a", 0, 0, 0, "")))}, nil,
			"stop sandbox s0; end Succeeded"},
		{"a pod is not done while one is to be started again", scene{Pod: probed(pod(onFailure, "a", "b"), "a"), Here: world(condemned(exit("a", 1, 0, 0, "0s")), exit("b", 0, 0, 0, ""))}, nil,
			"|a waits: CrashLoopBackOff|wake in 10s"},
		{"it starts again in a new sandbox if its own died", scene{Pod: probed(pod(onFailure, "a"), "a"), Here: func() *pleg.Instance {
			i := world(condemned(exit("a", 0, 0, 0, "")))
			i.Sandboxes[0].Ready = false
			return i
		}()}, nil, "stop sandbox s0; set up; create sandbox#1; start container a#1"},

		// Sidecars.
		{"a sidecar that has not started holds the next", scene{Pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), Here: world(up("s", 0))}, results{"s0": {}}, ""},
		{"and the regular ones", scene{Pod: probed(withSidecar(pod(always, "a"), "s"), "s"), Here: world(up("s", 0))}, results{"s0": {}}, ""},
		{"it holds them before its probes have started", scene{Pod: probed(withSidecar(pod(always, "a"), "s"), "s"), Here: world(up("s", 0))}, nil, ""},
		{"once it has started the next one starts", scene{Pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), Here: world(up("s", 0))}, results{"s0": {Started: true}}, "start container i#0"},
		{"that it is not ready holds nobody", scene{Pod: probed(withSidecar(pod(always, "a"), "s"), "s"), Here: world(up("s", 0))}, results{"s0": {Started: true, Text: "x"}}, "start container a#0"},
		{"a sidecar whose startup probe failed is stopped", scene{Pod: withInit(probed(withSidecar(pod(never, "a"), "s"), "s"), "i"), Here: world(up("s", 0))}, results{"s0": stillborn},
			"record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"and started again, also under Never", scene{Pod: withInit(probed(withSidecar(pod(never, "a"), "s"), "s"), "i"), Here: world(condemned(exit("s", 0, 0, 0, "")))}, nil,
			"start container s#1 after 0s"},
		{"a sidecar whose liveness probe failed does not hold the next", scene{Pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), Here: world(up("s", 0))}, results{"s0": dead},
			"start container i#0; record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"a dead sidecar is stopped while the pod runs", scene{Pod: probed(withSidecar(pod(always, "a"), "s"), "s"), Here: world(up("a", 0), up("s", 0))}, results{"s0": dead},
			"record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"a sidecar is not condemned when the work is done", scene{Pod: probed(withSidecar(pod(never, "a"), "s"), "s"), Here: world(exit("a", 0, 0, 0, ""), up("s", 0))}, results{"s0": dead},
			"record result Succeeded; stop container s s0 in 30s; stop sandbox s0"},

		// Going.
		{"a pod that goes is stopped with its own grace", scene{Pod: grace(probed(pod(always, "a"), "a"), 90), Nothing: true, Here: world(up("a", 0))}, results{"a0": dead},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.Accepted = true
			s := row.scene.Facts()
			s.Probes = row.probes
			if got := decided(t, s); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

func TestKillsSayWhy(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy v1.RestartPolicy
		failed probe.Kind
		want   string
	}{
		{"liveness", v1.RestartPolicyAlways, probe.Liveness, "Container a failed liveness probe, will be restarted"},
		{"startup", v1.RestartPolicyOnFailure, probe.Startup, "Container a failed startup probe, will be restarted"},
		{"under Never", v1.RestartPolicyNever, probe.Liveness, "Container a failed liveness probe"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scene{Pod: probed(pod(row.policy, "a"), "a"), Accepted: true, Here: world(up("a", 0))}.Facts()
			s.Probes = map[string]probe.Results{"a0": {Failed: row.failed, Why: "it said x"}}
			p := plan.Make(s)
			if c, stop := p.Steps[0][0], p.Steps[1][0]; c.Reason != row.want || c.Text != "it said x" || stop.Reason != row.want {
				t.Errorf("condemned for %q, %q, stopped for %q", c.Reason, c.Text, stop.Reason)
			}
		})
	}
	n := condemned(exit("a", 0, 0, 0, ""))
	if why := plan.ExitReason(&n); why != n.Kill.Reason {
		t.Errorf("restarted because %s", why)
	}
}

func TestTheHealthOfAContainerWithoutProbeResults(t *testing.T) {
	startup := pod(v1.RestartPolicyAlways, "a")
	startup.Spec.Containers[0].StartupProbe = &v1.Probe{}
	readiness := pod(v1.RestartPolicyAlways, "a")
	readiness.Spec.Containers[0].ReadinessProbe = &v1.Probe{}
	for name, row := range map[string]struct {
		pod            *v1.Pod
		started, ready bool
	}{
		"it has no probes":         {pod(v1.RestartPolicyAlways, "a"), true, true},
		"it has a startup probe":   {startup, false, false},
		"it has a readiness probe": {readiness, true, false},
	} {
		s := scene{Pod: row.pod, Accepted: true, Here: world(up("a", 0))}.Facts()
		if started, ready := s.Health(&row.pod.Spec.Containers[0], s.Instance().Newest("a")); started != row.started || ready != row.ready {
			t.Errorf("%s: started %v, ready %v", name, started, ready)
		}
	}
}

func TestWhatProbesSayOfAPodThatIsNotReady(t *testing.T) {
	status := func(ready ...string) *v1.PodStatus {
		st := &v1.PodStatus{}
		for _, name := range []string{"a", "b", "c"} {
			st.ContainerStatuses = append(st.ContainerStatuses, v1.ContainerStatus{Name: name, Ready: slices.Contains(ready, name)})
		}
		return st
	}
	s := scene{Pod: pod(v1.RestartPolicyAlways, "a", "b", "c"), Accepted: true, Here: world(up("a", 0), up("b", 0))}.Facts()
	s.Probes = map[string]probe.Results{"a0": {Text: "x"}, "b0": {Text: "y"}}
	for want, st := range map[string]*v1.PodStatus{"": status("a", "b", "c"), "x": status("b"), "a: x; b: y": status()} {
		if got := s.ProbeMessages(st); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.Probes = map[string]probe.Results{"a0": {}, "b0": {Text: "y"}}
	if got := s.ProbeMessages(status()); got != "y" {
		t.Errorf("one says nothing: %q", got)
	}
}
