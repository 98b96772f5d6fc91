package agent

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/instance"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
)

// probed gives the pod's container of that name probes of each kind.
func probed(p *v1.Pod, name string) *v1.Pod {
	pr := &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}}
	c := podspec.FindContainer(p, name)
	c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = pr.DeepCopy(), pr.DeepCopy(), pr.DeepCopy()
	return p
}

// with changes a copy of the container.
func with(c pleg.Container, change func(*pleg.Container)) pleg.Container {
	change(&c)
	return c
}

// doomed condemns a container, which then gets 7 s.
func doomed(c pleg.Container) pleg.Container {
	return with(c, func(c *pleg.Container) {
		c.Kill = &checkpoint.KillDecision{Reason: "Container a failed liveness probe, will be restarted", Text: "Liveness probe failed: x", Grace: 7 * time.Second}
	})
}

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
		{"a container whose liveness probe failed is condemned, then stopped", scene{pod: probed(pod(always, "a"), "a"), here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"so is one whose startup probe failed", scene{pod: probed(pod(always, "a"), "a"), here: world(up("a", 0))}, results{"a0": stillborn},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"the probe's grace wins over the pod's", scene{pod: grace(probed(pod(always, "a"), "a"), 90), here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 1m30s; stop container a a0 in 1m30s"},
		{"but one probe's grace is not another's", scene{pod: grace(probed(pod(always, "a"), "a"), 90), here: world(up("a", 0))}, results{"a0": stillborn},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"a probe's grace below two seconds is two seconds", scene{pod: grace(probed(pod(always, "a"), "a"), 1), here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 2s; stop container a a0 in 2s"},
		{"under Never it is stopped too", scene{pod: probed(pod(never, "a"), "a"), here: world(up("a", 0))}, results{"a0": dead},
			"record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"two at a time are stopped together", scene{pod: probed(probed(pod(always, "a", "b"), "a"), "b"), here: world(up("a", 0), up("b", 0))}, results{"a0": dead, "b0": stillborn},
			"record kill decision a a0 in 30s; record kill decision b b0 in 30s; stop container a a0 in 30s, stop container b b0 in 30s"},
		{"what can start does not wait for a stop", scene{pod: probed(pod(always, "a", "b"), "a"), here: world(up("a", 0), exit("b", 0, 1, 0, ""))}, results{"a0": dead},
			"start container b#1 after 0s; record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"the attempt before does not count", scene{pod: probed(pod(always, "a"), "a"), here: world(exit("a", 0, 1, 0, ""), up("a", 1))}, results{"a0": dead}, ""},

		// What is left alone.
		{"one that is not started yet is left alone", scene{pod: probed(pod(always, "a"), "a"), here: world(up("a", 0))}, results{"a0": {}}, ""},
		{"one that is not ready is left alone", scene{pod: probed(pod(always, "a"), "a"), here: world(up("a", 0))}, results{"a0": {Started: true, Text: "x"}}, ""},
		{"one that is well is left alone", scene{pod: probed(pod(always, "a"), "a"), here: world(up("a", 0))}, results{"a0": {Started: true, Ready: true}}, ""},

		// After an agent that died.
		{"a condemned one that lives is stopped with the grace that it was to get", scene{pod: probed(pod(always, "a"), "a"), here: world(doomed(up("a", 0)))}, nil,
			"stop container a a0 in 7s"},
		{"whatever its probes say now", scene{pod: probed(pod(always, "a"), "a"), here: world(doomed(up("a", 0)))}, results{"a0": {Started: true, Ready: true}},
			"stop container a a0 in 7s"},
		{"a condemned one that is dead is started again", scene{pod: probed(pod(always, "a"), "a"), here: world(doomed(exit("a", 0, 137, 0, "")))}, nil,
			"start container a#1 after 0s"},

		// Restarts.
		{"after exit code 0 under OnFailure it is started again", scene{pod: probed(pod(onFailure, "a"), "a"), here: world(doomed(exit("a", 0, 0, 0, "")))}, nil,
			"start container a#1 after 0s"},
		{"with the back-off of a crash", scene{pod: probed(pod(onFailure, "a"), "a"), here: world(doomed(exit("a", 1, 0, 0, "0s")))}, nil,
			"|a waits: CrashLoopBackOff|wake in 10s"},
		{"under Never it is not, and has failed", scene{pod: probed(pod(never, "a"), "a"), here: world(doomed(exit("a", 0, 143, 0, "")))}, nil,
			"stop sandbox s0; end Failed"},
		{"under Never it has succeeded if it says so", scene{pod: probed(pod(never, "a"), "a"), here: world(doomed(exit("a", 0, 0, 0, "")))}, nil,
			"stop sandbox s0; end Succeeded"},
		{"its own policy wins over Never", scene{pod: own(probed(pod(never, "a"), "a"), v1.ContainerRestartPolicyOnFailure), here: world(doomed(exit("a", 0, 0, 0, "")))}, nil,
			"start container a#1 after 0s"},
		{"its own Never wins over Always", scene{pod: own(probed(pod(always, "a"), "a"), v1.ContainerRestartPolicyNever), here: world(doomed(exit("a", 0, 1, 0, "")))}, nil,
			"stop sandbox s0; end Failed"},
		{"rules are not asked", scene{pod: own(probed(pod(always, "a"), "a"), v1.ContainerRestartPolicyNever, onZero), here: world(doomed(exit("a", 0, 0, 0, "")))}, nil,
			"stop sandbox s0; end Succeeded"},
		{"a pod is not done while one is to be started again", scene{pod: probed(pod(onFailure, "a", "b"), "a"), here: world(doomed(exit("a", 1, 0, 0, "0s")), exit("b", 0, 0, 0, ""))}, nil,
			"|a waits: CrashLoopBackOff|wake in 10s"},
		{"it starts again in a new sandbox if its own died", scene{pod: probed(pod(onFailure, "a"), "a"), here: func() *pleg.Instance {
			i := world(doomed(exit("a", 0, 0, 0, "")))
			i.Sandboxes[0].Ready = false
			return i
		}()}, nil, "stop sandbox s0; set up; create sandbox#1; start container a#1"},

		// Sidecars.
		{"a sidecar that has not started holds the next", scene{pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), here: world(up("s", 0))}, results{"s0": {}}, ""},
		{"and the regular ones", scene{pod: probed(withSidecar(pod(always, "a"), "s"), "s"), here: world(up("s", 0))}, results{"s0": {}}, ""},
		{"it holds them before its probes have begun", scene{pod: probed(withSidecar(pod(always, "a"), "s"), "s"), here: world(up("s", 0))}, nil, ""},
		{"once it has started the next one starts", scene{pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), here: world(up("s", 0))}, results{"s0": {Started: true}}, "start container i#0"},
		{"that it is not ready holds nobody", scene{pod: probed(withSidecar(pod(always, "a"), "s"), "s"), here: world(up("s", 0))}, results{"s0": {Started: true, Text: "x"}}, "start container a#0"},
		{"a sidecar whose startup probe failed is stopped", scene{pod: withInit(probed(withSidecar(pod(never, "a"), "s"), "s"), "i"), here: world(up("s", 0))}, results{"s0": stillborn},
			"record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"and started again, also under Never", scene{pod: withInit(probed(withSidecar(pod(never, "a"), "s"), "s"), "i"), here: world(doomed(exit("s", 0, 0, 0, "")))}, nil,
			"start container s#1 after 0s"},
		{"a sidecar whose liveness probe failed does not hold the next", scene{pod: withInit(probed(withSidecar(pod(always, "a"), "s"), "s"), "i"), here: world(up("s", 0))}, results{"s0": dead},
			"start container i#0; record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"a dead sidecar is stopped while the pod runs", scene{pod: probed(withSidecar(pod(always, "a"), "s"), "s"), here: world(up("a", 0), up("s", 0))}, results{"s0": dead},
			"record kill decision s s0 in 30s; stop container s s0 in 30s"},
		{"a sidecar is not condemned when the work is done", scene{pod: probed(withSidecar(pod(never, "a"), "s"), "s"), here: world(exit("a", 0, 0, 0, ""), up("s", 0))}, results{"s0": dead},
			"record result Succeeded; stop container s s0 in 30s; stop sandbox s0"},

		// Going.
		{"a pod that goes is stopped with its own grace", scene{pod: grace(probed(pod(always, "a"), "a"), 90), nothing: true, here: world(up("a", 0))}, results{"a0": dead},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.accepted = true
			s := row.scene.situation()
			s.Probes = row.probes
			if got := told(plan.Make(s)); got != row.want {
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
			s := scene{pod: probed(pod(row.policy, "a"), "a"), accepted: true, here: world(up("a", 0))}.situation()
			s.Probes = map[string]probe.Results{"a0": {Failed: row.failed, Why: "it said x"}}
			p := plan.Make(s)
			if c, stop := p.Steps[0][0], p.Steps[1][0]; c.Reason != row.want || c.Text != "it said x" || stop.Reason != row.want {
				t.Errorf("condemned for %q, %q, stopped for %q", c.Reason, c.Text, stop.Reason)
			}
		})
	}
	n := doomed(exit("a", 0, 0, 0, ""))
	if why := plan.ExitReason(&n); why != n.Kill.Reason {
		t.Errorf("restarted because %s", why)
	}
}

func TestReadinessInTheStatus(t *testing.T) {
	well := probe.Results{Started: true, Ready: true}
	row := func(name string, p *v1.Pod, probes map[string]probe.Results, started, ready bool, message string) {
		t.Run(name, func(t *testing.T) {
			s := scene{pod: p, accepted: true, here: world(up("a", 0), up("b", 0))}.situation()
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
	s := scene{pod: probed(withSidecar(pod(v1.RestartPolicyAlways, "a"), "s"), "s"), accepted: true, here: world(up("s", 0))}.situation()
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

func TestACondemnedContainersEndSaysWhatItsProbeSaid(t *testing.T) {
	s := scene{pod: probed(pod(v1.RestartPolicyAlways, "a"), "a"), accepted: true, here: world(doomed(exit("a", 0, 0, 0, "")), up("a", 1))}.situation()
	last := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil).ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.Message != "Liveness probe failed: x" {
		t.Errorf("last state %+v", last)
	}
}

func TestVerdictsAreKeptWithTheCheckpoint(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := checkpoint.KillDecision{Cause: checkpoint.CauseProbe, Reason: "r", Text: "t", Grace: 3 * time.Second}
	w := idleWorker(t, &instance.Disk{Root: r}, map[string]*checkpoint.Checkpoint{})
	c := checkpoint.NewCheckpoint(scene{pod: pod(v1.RestartPolicyAlways, "a")}.situation().Pod, metav1.Now())
	c.KillDecisions = map[string]checkpoint.KillDecision{"gone": {}, "a0": {Reason: "older"}}
	w.Known["u"] = c
	s := plan.Facts{Observed: &pleg.Observed{Instances: map[string]*pleg.Instance{"u": world(up("a", 0), up("b", 1))}}}
	w.MarkKill(&s, plan.Action{UID: "u", ID: "b1", Reason: want.Reason, Text: want.Text, Grace: want.Grace})
	all, err := r.Checkpoints(nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	if got := all[0].KillDecisions; len(got) != 2 || got["b1"] != want || got["a0"].Reason != "older" {
		t.Errorf("condemned are %+v", got)
	}
}

// What is decided of several containers in one step is all written down.
func TestContainersAreCondemnedTogether(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := &pleg.Observed{Instances: map[string]*pleg.Instance{"u1": {UID: "u1"}}}
	var step []plan.Action
	for k := range 20 {
		id := fmt.Sprintf("id%d", k)
		seen.Instances["u1"].Containers = append(seen.Instances["u1"].Containers, pleg.Container{ID: id})
		step = append(step, plan.Action{Do: plan.DoMarkKill, UID: "u1", ID: id, Name: id, Reason: "it is ill"})
	}
	w := idleWorker(t, &instance.Disk{Root: r}, map[string]*checkpoint.Checkpoint{"u1": {Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}}})
	if err := w.Apply(t.Context(), &plan.Facts{Observed: seen}, [][]plan.Action{step}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Known["u1"].KillDecisions); n != len(step) {
		t.Errorf("%d of %d containers are condemned", n, len(step))
	}
}
