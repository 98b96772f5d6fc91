package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
)

type scene = plantest.Scene

var (
	noon        = plantest.Noon
	pod         = plantest.Pod
	withInit    = plantest.WithInit
	withSidecar = plantest.WithSidecar
	probed      = plantest.Probed
	world       = plantest.World
	up          = plantest.Up
	exit        = plantest.Exit
	in          = plantest.In
	reported    = plantest.Reported
)

// spoken writes a status in one line: the phase, then each container.
func spoken(st v1.PodStatus) string {
	out := []string{string(st.Phase)}
	for _, list := range [][]v1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses} {
		for _, c := range list {
			t := fmt.Sprintf("%s#%d %s", c.Name, c.RestartCount, state(c.State))
			if l := state(c.LastTerminationState); l != "" {
				t += " after " + l
			}
			if c.Ready {
				t += " ready"
			}
			out = append(out, t)
		}
	}
	return strings.Join(out, "; ")
}

func state(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("%d %s", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Waiting != nil:
		return "waits:" + s.Waiting.Reason
	}
	return ""
}

func TestStatus(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	created, unknown := rt.ContainerState_CONTAINER_CREATED, rt.ContainerState_CONTAINER_UNKNOWN
	p := func(policy v1.RestartPolicy) *v1.Pod { return pod(policy, "a") }
	two := func(policy v1.RestartPolicy) *v1.Pod { return pod(policy, "a", "b") }
	failing := map[string]plan.Failure{"a": {Waiting: plan.Waiting{Reason: "RunContainerError"}, Retry: noon.Add(time.Second)}}
	for _, row := range []struct {
		name string
		scene
		last []string
		want string
	}{
		// The phase.
		{"nothing made yet", scene{Pod: p(always)}, nil, "Pending; a#0 waits:ContainerCreating"},
		{"nothing made yet, with init containers", scene{Pod: withInit(p(always), "i")}, nil, "Pending; i#0 waits:PodInitializing; a#0 waits:PodInitializing"},
		{"an init container runs", scene{Pod: withInit(p(always), "i"), Here: world(up("i", 0))}, nil, "Pending; i#0 running; a#0 waits:PodInitializing"},
		{"an init container has failed and is restarted", scene{Pod: withInit(p(always), "i"), Here: world(exit("i", 0, 1, 0, "0s"))}, nil,
			"Pending; i#0 waits:CrashLoopBackOff after 1 Error; a#0 waits:PodInitializing"},
		{"an init container has failed for good", scene{Pod: withInit(p(never), "i"), Here: world(exit("i", 0, 1, 0, ""))}, nil, "Failed; i#0 1 Error; a#0 waits:PodInitializing"},
		{"all run", scene{Pod: two(always), Here: world(up("a", 0), up("b", 2))}, nil, "Running; a#0 running ready; b#2 running ready"},
		{"one of two is still to come", scene{Pod: two(always), Here: world(up("a", 0))}, nil, "Pending; a#0 running ready; b#0 waits:ContainerCreating"},
		{"one of two is done", scene{Pod: two(never), Here: world(up("a", 0), exit("b", 0, 0, 0, ""))}, nil, "Running; a#0 running ready; b#0 0 Completed"},
		{"one that crashed waits to be restarted", scene{Pod: p(always), Here: world(exit("a", 1, 1, 0, "0s"))}, nil, "Running; a#1 waits:CrashLoopBackOff after 1 Error"},
		{"one that crashed is restarted at once", scene{Pod: p(always), Here: world(exit("a", 0, 1, 0, ""))}, nil, "Running; a#0 1 Error"},
		{"exit code 0 under OnFailure", scene{Pod: p(onFailure), Here: world(exit("a", 0, 0, 0, ""))}, nil, "Succeeded; a#0 0 Completed"},
		{"exit code 1 under OnFailure", scene{Pod: p(onFailure), Here: world(exit("a", 0, 1, 0, ""))}, nil, "Running; a#0 1 Error"},
		{"both exit codes under Never", scene{Pod: two(never), Here: world(exit("a", 0, 0, 0, ""), exit("b", 0, 2, 0, ""))}, nil, "Failed; a#0 0 Completed; b#0 2 Error"},
		{"a sidecar runs when the work is done", scene{Pod: withSidecar(p(never), "s"), Here: world(up("s", 0), exit("a", 0, 0, 0, ""))}, nil, "Running; s#0 running ready; a#0 0 Completed"},
		{"a sidecar that has stopped counts for nothing", scene{Pod: withSidecar(p(never), "s"), Here: world(exit("s", 0, 9, 0, ""), exit("a", 0, 0, 0, ""))}, nil, "Succeeded; s#0 9 Error; a#0 0 Completed"},
		{"a sidecar is still to come", scene{Pod: withSidecar(p(always), "s"), Here: world()}, nil, "Pending; s#0 waits:PodInitializing; a#0 waits:PodInitializing"},
		{"a reboot's init container runs again", scene{Pod: withInit(p(always), "i"), Here: world(up("i", 1), exit("a", 0, 255, 0, ""))}, nil, "Pending; i#1 running; a#0 255 Error"},

		// The states.
		{"created", scene{Pod: p(always), Here: world(in(created, "a"))}, nil, "Pending; a#0 waits:"},
		{"unknown, never seen", scene{Pod: p(always), Here: world(in(unknown, "a"))}, nil, "Pending; a#0 waits:"},
		{"unknown, ran", scene{Pod: p(always), Here: world(in(unknown, "a"))}, []string{"a#0 running"}, "Running; a#1 137 ContainerStatusUnknown"},
		{"unknown, ran, not to be restarted", scene{Pod: p(never), Here: world(in(unknown, "a"))}, []string{"a#0 running"}, "Running; a#0 137 ContainerStatusUnknown"},
		{"removed, ran", scene{Pod: p(always), Here: world()}, []string{"a#2 running"}, "Running; a#3 waits:ContainerCreating after 137 ContainerStatusUnknown"},
		{"removed, ran, and the pod is being removed", scene{Pod: p(always), Accepted: true, Retired: true, Here: world()}, []string{"a#2 running"}, "Running; a#2 waits:ContainerCreating after 137 ContainerStatusUnknown"},
		{"removed, had ended", scene{Pod: p(always), Here: world()}, []string{"a#2 exited 4"}, "Running; a#2 4 Error"},
		{"removed, waited to be restarted", scene{Pod: p(always), Here: world()}, []string{"a#2 waits 4"}, "Running; a#2 waits:ContainerCreating after 4 Error"},
		{"an init container removed, ran, and a regular one runs", scene{Pod: withInit(p(always), "i"), Here: world(up("a", 0))}, []string{"i#1 running", "a#0 running"}, "Running; i#1 0 Completed ready; a#0 running ready"},
		{"an init container removed, never seen, and a regular one runs", scene{Pod: withInit(p(always), "i"), Here: world(up("a", 0))}, nil, "Running; i#0 0 Completed ready; a#0 running ready"},
		{"an init container removed, had ended well", scene{Pod: withInit(p(always), "i"), Here: world()}, []string{"i#1 exited 0"}, "Pending; i#1 0 Error ready; a#0 waits:PodInitializing"},
		{"a sidecar removed, ran", scene{Pod: withSidecar(p(always), "s"), Here: world(up("a", 0))}, []string{"s#0 running"}, "Running; s#1 waits:PodInitializing after 137 ContainerStatusUnknown; a#0 running ready"},

		// What could not be started.
		{"a start failed and is tried again", scene{Pod: p(always), Here: world(exit("a", 0, 128, 0, "")), Failures: failing}, nil, "Running; a#0 waits:RunContainerError after 128 Error"},
		{"a start failed and is not to be tried again", scene{Pod: p(never), Here: world(exit("a", 0, 128, 0, "")), Failures: failing}, nil, "Failed; a#0 128 Error"},

		// What was before.
		{"the attempt before is in the runtime", scene{Pod: p(always), Here: world(exit("a", 0, 7, time.Minute, ""), up("a", 1))}, nil, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was pruned", scene{Pod: p(always), Here: world(up("a", 1))}, []string{"a#0 exited 7"}, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was pruned while it waited", scene{Pod: p(always), Here: world(up("a", 1))}, []string{"a#0 waits 7"}, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was removed while it ran", scene{Pod: p(always), Here: world(up("a", 1))}, []string{"a#0 running"}, "Running; a#1 running after 137 ContainerStatusUnknown ready"},
		{"a count does not fall", scene{Pod: p(always), Here: world(up("a", 1))}, []string{"a#3 exited 7"}, "Running; a#3 running after 7 Error ready"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.scene.Facts()
			var last *v1.PodStatus
			if row.last != nil {
				last = reported(row.Pod, row.last...)
			}
			if got := spoken(podstatus.PodStatus(&s, new(plan.Make(s)), &podspec.Host{}, last)); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// A pod has started when it was accepted, else when it was reported first.
func TestAPodHasAStartTime(t *testing.T) {
	was := metav1.Time{Time: noon.Add(-time.Hour)}
	accepted := func(s *plan.Facts) { s.Known["u"].Accepted = was }
	for _, row := range []struct {
		name string
		scene
		last *v1.PodStatus
		want time.Time
	}{
		{"it is new", scene{}, nil, noon},
		{"it was accepted, and its status is lost", scene{Accepted: true, Change: accepted}, nil, was.Time},
		{"it was reported", scene{Accepted: true}, &v1.PodStatus{StartTime: &was}, was.Time},
		{"it was reported, and its checkpoint is lost", scene{}, &v1.PodStatus{StartTime: &was}, was.Time},
	} {
		row.Pod, row.Here = pod(v1.RestartPolicyAlways, "a"), world(up("a", 0))
		s := row.scene.Facts()
		if got := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, row.last).StartTime; got == nil || !got.Time.Equal(row.want) {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// What is decided of a pod, or keeps it from running, is in its status.
func TestWhyAPodDoesNotRunIsInItsStatus(t *testing.T) {
	result := func(phase v1.PodPhase) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Known["u"].Result = &checkpoint.Result{Phase: phase, Reason: "Decided", Message: "it was decided"}
		}
	}
	halted := func(terminated bool) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Halted = plan.Halt{Waiting: plan.Waiting{Reason: "Stopped", Message: message.Fixed("the owner stopped it")}, Terminated: terminated}
		}
	}
	both := func(s *plan.Facts) { result(v1.PodFailed)(s); halted(false)(s) }
	for _, row := range []struct {
		name   string
		here   *pleg.Instance
		ended  v1.PodPhase
		change func(*plan.Facts)
		want   string
	}{
		{"it runs", world(up("a", 0)), "", nil, "Running : "},
		{"it is to fail, and still runs", world(up("a", 0)), "", result(v1.PodFailed), "Running Decided: it was decided"},
		{"it is to fail, and its stop succeeded", world(exit("a", 0, 0, 0, "")), "", result(v1.PodFailed), "Failed Decided: it was decided"},
		{"it is to succeed, and its stop failed", world(exit("a", 0, 1, 0, "")), "", result(v1.PodSucceeded), "Succeeded Decided: it was decided"},
		{"it is stopped, and still runs", world(up("a", 0)), "", halted(false), "Running Stopped: the owner stopped it"},
		{"it is stopped", world(exit("a", 0, 1, 0, "")), "", halted(false), "Pending Stopped: the owner stopped it"},
		{"it is stopped, and nothing is left", nil, "", halted(false), "Pending Stopped: the owner stopped it"},
		{"the machine goes down, and it still runs", world(up("a", 0)), "", halted(true), "Running Stopped: the owner stopped it"},
		{"the machine goes down", world(exit("a", 0, 1, 0, "")), "", halted(true), "Failed Stopped: the owner stopped it"},
		{"it is to fail before it is stopped", world(up("a", 0)), "", both, "Running Decided: it was decided"},
		{"it had ended before it was stopped", world(exit("a", 0, 1, 0, "")), v1.PodFailed, halted(false), "Failed : "},
	} {
		s := scene{Pod: pod(v1.RestartPolicyNever, "a"), Accepted: true, Ended: row.ended, Here: row.here, Change: row.change}.Facts()
		st := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil)
		if got := fmt.Sprintf("%s %s: %s", st.Phase, st.Reason, st.Message); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// A start that hangs is said where nothing better is.
func TestAStartThatHangsIsSaid(t *testing.T) {
	hangs := func(key string) func(*plan.Facts) {
		return func(s *plan.Facts) { s.Running = map[string]plan.Running{key: {Since: noon.Add(-time.Minute)}} }
	}
	hookFailed := func(s *plan.Facts) {
		hangs("a")(s)
		s.PostStart = map[string]plan.HookState{"a0": {Failed: "no such file"}}
	}
	hooked := pod(v1.RestartPolicyAlways, "a")
	hooked.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}}
	const silent = "the runtime has not answered since 2026-01-02 11:59:00 UTC"
	for _, row := range []struct {
		name string
		scene
		want string
	}{
		{"the container's start hangs", scene{Here: world(), Change: hangs("a")}, silent},
		{"the sandbox's start hangs", scene{Change: hangs(plan.SandboxFailure)}, silent},
		{"another one's does", scene{Here: world(), Change: hangs("b")}, ""},
		{"its hook has failed", scene{Pod: hooked, Here: world(up("a", 0)), Change: hookFailed}, "no such file"},
		{"it runs", scene{Here: world(up("a", 0)), Change: hangs("a")}, "not waiting"},
	} {
		if row.Pod == nil {
			row.Pod = pod(v1.RestartPolicyAlways, "a")
		}
		s := row.scene.Facts()
		got := "not waiting"
		if w := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil).ContainerStatuses[0].State.Waiting; w != nil {
			got = w.Message
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// The addresses of a status are those that the variables of containers have.
func TestTheAddressesOfAPod(t *testing.T) {
	p := pod(v1.RestartPolicyAlways, "a")
	p.Spec.HostNetwork = false
	here := &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, IPs: []string{"fd00::2", "10.1.0.2", "10.2.0.2"}}}}
	for _, row := range []struct{ machine, want string }{
		{"192.0.2.2", "10.1.0.2 [{10.1.0.2} {fd00::2}]"},
		{"fd00::1", "fd00::2 [{fd00::2} {10.1.0.2}]"},
	} {
		s := scene{Pod: p, Accepted: true, Here: here}.Facts()
		st := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{HostIPs: []string{row.machine}}, nil)
		if got := fmt.Sprint(st.PodIP, " ", st.PodIPs); got != row.want {
			t.Errorf("machine %s: got %s, want %s", row.machine, got, row.want)
		}
	}
}
