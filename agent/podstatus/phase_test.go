package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
)

func TestReadinessInTheStatus(t *testing.T) {
	well := probe.Results{Started: true, Ready: true}
	row := func(name string, p *v1.Pod, probes map[string]probe.Results, started, ready bool, message string) {
		t.Run(name, func(t *testing.T) {
			s := scene{Pod: p, Accepted: true, Here: world(up("a", 0), up("b", 0))}.Facts()
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
	s := scene{Pod: probed(withSidecar(pod(v1.RestartPolicyAlways, "a"), "s"), "s"), Accepted: true, Here: world(up("s", 0))}.Facts()
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

// told writes a condition in one line; "" if there is none.
func told(st v1.PodStatus, kind v1.PodConditionType) string {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestConditions(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	p := func(policy v1.RestartPolicy) *v1.Pod { return pod(policy, "a") }
	gated := p(always)
	gated.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/up"}}
	gatedProbed := probed(gated.DeepCopy(), "a")
	dead := func() *pleg.Instance {
		return &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", HostNetwork: true}}, Containers: []pleg.Container{exit("a", 0, 0, 0, "")}}
	}
	made := func(n int, reason string) map[string]plan.Failure {
		return map[string]plan.Failure{plan.SandboxFailure: {Made: n, Waiting: plan.Waiting{Reason: reason, Message: message.Fixed("no such network")}}}
	}
	resets := func(policy v1.RestartPolicy) *v1.Pod {
		all := p(policy)
		all.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyNever)
		all.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
		return all
	}
	shutDown := func(s *plan.Facts) {
		s.Halted = plan.Halt{Waiting: plan.Waiting{Reason: "Terminated", Message: message.Fixed("the machine goes down")}, Terminated: true}
	}
	up0 := func() *pleg.Instance { return world(up("a", 0)) }
	succeeded := func() *pleg.Instance { return world(exit("a", 0, 0, 0, "")) }
	failed := func() *pleg.Instance { return world(exit("a", 0, 3, 0, "")) }
	const (
		sandbox   = v1.PodReadyToStartContainers
		restarts  = v1.AllContainersRestarting
		disrupted = v1.DisruptionTarget
	)
	for _, row := range []struct {
		name string
		scene
		kind v1.PodConditionType
		want string
	}{
		{"a sandbox is there", scene{Pod: p(always), Here: up0()}, sandbox, "True : "},
		{"the sandbox of a pod that has succeeded is stopped", scene{Pod: p(never), Here: succeeded()}, sandbox, "False : "},
		{"the sandbox of a pod that has failed is stopped", scene{Pod: p(never), Here: failed()}, sandbox, "False : "},
		{"a sandbox was made once, and is dead", scene{Pod: p(always), Here: dead(), Failures: made(1, "")}, sandbox, "False : no such network"},
		{"a sandbox was made again, and is dead", scene{Pod: p(always), Here: dead(), Failures: made(2, "")}, sandbox, "False SandboxUnusable: its sandbox is dead; it was made again 1 times"},
		{"a failure to make it comes first", scene{Pod: p(always), Here: dead(), Failures: made(2, "FailedCreatePodSandBox")}, sandbox, "False FailedCreatePodSandBox: no such network"},
		{"a pod that has ended needs no sandbox", scene{Pod: p(never), Here: dead(), Failures: made(2, "")}, sandbox, "False : no such network"},

		{"a pod that runs is initialized", scene{Pod: p(always), Here: up0()}, v1.PodInitialized, "True : "},
		{"a pod that runs is ready", scene{Pod: p(always), Here: up0()}, v1.PodReady, "True : "},
		{"a pod that has succeeded was initialized", scene{Pod: p(never), Here: succeeded()}, v1.PodInitialized, "True PodCompleted: "},
		{"a pod that has succeeded is not ready", scene{Pod: p(never), Here: succeeded()}, v1.PodReady, "False PodCompleted: "},
		{"a pod that has failed was initialized", scene{Pod: p(never), Here: failed()}, v1.PodInitialized, "True : "},
		{"a pod that has failed is not ready", scene{Pod: p(never), Here: failed()}, v1.PodReady, "False PodFailed: "},
		{"a pod whose init container has failed is not initialized", scene{Pod: withInit(p(never), "i"), Here: world(exit("i", 0, 1, 0, ""))}, v1.PodInitialized,
			"False ContainersNotInitialized: containers with incomplete status: [i]"},
		{"a gate that nothing opens", scene{Pod: gated, Here: up0()}, v1.PodReady, `False ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.com/up" does not exist.`},
		{"the containers behind it are ready", scene{Pod: gated, Here: up0()}, v1.ContainersReady, "True : "},
		{"a container that is not ready is said before a gate", scene{Pod: gatedProbed, Here: up0()}, v1.PodReady, "False ContainersNotReady: containers with unready status: [a]"},

		{"a pod without such a rule does not restart as a whole", scene{Pod: p(always), Here: up0()}, restarts, ""},
		{"a pod with a rule runs", scene{Pod: resets(always), Here: up0()}, restarts, "False : "},
		{"a container waits for its image", scene{Pod: resets(always), Here: world()}, restarts, "False : "},
		{"all its containers restart", scene{Pod: resets(always), Accepted: true, Here: world(exit("a", 0, 42, 0, ""))}, restarts, "True RestartAllContainersStarted: "},
		{"a pod with a rule has succeeded", scene{Pod: resets(never), Here: succeeded()}, restarts, "False PodCompleted: "},
		{"a pod with a rule has failed", scene{Pod: resets(never), Here: failed()}, restarts, "False PodFailed: "},

		{"the machine does not go down", scene{Pod: p(always), Accepted: true, Here: up0()}, disrupted, ""},
		{"the machine goes down", scene{Pod: p(always), Accepted: true, Here: up0(), Change: shutDown}, disrupted, "True TerminationByKubelet: the machine goes down"},
		{"the machine goes down after the pod has ended", scene{Pod: p(never), Accepted: true, Ended: v1.PodFailed, Here: failed(), Change: shutDown}, disrupted, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.scene.Facts()
			st := podstatus.PodStatus(&s, new(plan.Make(s)), &podspec.Host{}, nil)
			if got := told(st, row.kind); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// A condition that stays as it was keeps its time, in a status of each kind.
func TestAConditionThatStaysKeepsItsTime(t *testing.T) {
	s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(up("a", 0))}.Facts()
	long := metav1.Time{Time: noon.Add(-time.Hour)}
	last := &v1.PodStatus{Conditions: []v1.PodCondition{
		{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: long},
		{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: long},
	}}
	ended := v1.PodStatus{}
	podstatus.EndStatus(&s, &ended, checkpoint.Result{Phase: v1.PodFailed}, last)
	first := v1.PodStatus{}
	podstatus.EndStatus(&s, &first, checkpoint.Result{Phase: v1.PodFailed}, nil)
	for _, row := range []struct {
		name string
		st   v1.PodStatus
		kind v1.PodConditionType
		want time.Time
	}{
		{"one that runs was initialized before", podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, last), v1.PodInitialized, long.Time},
		{"one that runs was not ready before", podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, last), v1.PodReady, noon},
		{"nothing was told before of its schedule", podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, last), v1.PodScheduled, noon},
		{"one that has ended was initialized before", ended, v1.PodInitialized, long.Time},
		{"one that has ended was not ready before", ended, v1.PodReady, long.Time},
		{"one that has ended was not reported before", first, v1.PodInitialized, noon},
	} {
		for _, c := range row.st.Conditions {
			if c.Type == row.kind && !c.LastTransitionTime.Time.Equal(row.want) {
				t.Errorf("%s: since %s, want %s", row.name, c.LastTransitionTime, row.want)
			}
		}
	}
}

func TestPodsThatStartAfterAPodWaitUntilItIsReady(t *testing.T) {
	with := func(phase v1.PodPhase, cs ...v1.PodCondition) *v1.PodStatus {
		return &v1.PodStatus{Phase: phase, Conditions: cs}
	}
	for name, row := range map[string]struct {
		st   *v1.PodStatus
		want bool
	}{
		"it has no status":                {nil, false},
		"it runs":                         {with(v1.PodRunning), false},
		"it is ready":                     {with(v1.PodRunning, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}), true},
		"it is not ready":                 {with(v1.PodRunning, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}), false},
		"its containers alone are ready":  {with(v1.PodRunning, v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionTrue}), false},
		"it has succeeded":                {with(v1.PodSucceeded), true},
		"it has failed, and is not ready": {with(v1.PodFailed), false},
	} {
		if got := podstatus.IsReady(row.st); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
