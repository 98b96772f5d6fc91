package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
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
			s := row.scene.Situation()
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
