package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/status"
)

// renew makes a container one whose restart was asked for.
func renew(c pleg.Container) pleg.Container {
	c.Kill = &checkpoint.KillDecision{Reason: checkpoint.RestartRequested, Grace: 7 * time.Second, Requested: true}
	return c
}

// renewed makes a situation one in which a new sandbox was asked for in place of s0.
func renewedSandbox(s *plan.Facts) {
	s.Known["u"] = s.Known["u"].WithSandboxReplaced("s0")
	s.Instance().MarkReplaced("s0")
}

func TestPlanOfRenewals(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	checkPlans(t, []row{
		{"a container is stopped with its grace", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(renew(up("a", 0)), up("b", 0))},
			"stop container a a0 in 7s"},
		{"and started again at once, as if for the first time", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(renew(exit("a", 3, 1, 0, "40s")), up("b", 0))},
			"start container a#4"},
		{"one that waits after crashes waits no more", scene{Pod: pod(always, "a"), Accepted: true, Here: world(renew(exit("a", 5, 1, time.Second, "5m0s")))},
			"start container a#6"},
		{"a restart policy does not keep it down", scene{Pod: pod(never, "a", "b"), Accepted: true, Here: world(renew(exit("a", 0, 137, 0, "")), up("b", 0))},
			"start container a#1"},
		{"nor does it end its pod", scene{Pod: pod(never, "a"), Accepted: true, Here: world(renew(exit("a", 0, 0, 0, "")))},
			"start container a#1"},
		{"a whole pod is stopped, and all of it made again", scene{Pod: withInit(pod(always, "a", "b"), "i"), Accepted: true,
			Here: world(exit("i", 0, 0, time.Hour, ""), up("a", 0), up("b", 0)), Change: renewedSandbox},
			"stop container a a0 in 30s, stop container b b0 in 30s; stop sandbox s0; set up; create sandbox#1; start container i#1"},
		{"whatever its containers exit with", scene{Pod: pod(never, "a", "b"), Accepted: true,
			Here: world(exit("a", 0, 143, 0, ""), up("b", 0)), Change: renewedSandbox},
			"stop container b b0 in 30s; stop sandbox s0; set up; create sandbox#1; start container a#1, start container b#1"},
		{"a stop that a former agent began goes on", scene{Pod: pod(never, "a"), Accepted: true, Here: dead(world(exit("a", 0, 137, 0, ""))), Change: renewedSandbox},
			"stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"with the new sandbox it goes on as ever", scene{Pod: pod(never, "a"), Accepted: true, Here: &pleg.Instance{
			Sandboxes:  []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}},
			Containers: []pleg.Container{exit("a", 0, 143, 0, "")}}, Change: renewedSandbox}, "start container a#1"},
		{"and is not made again again", scene{Pod: pod(always, "a"), Accepted: true, Here: &pleg.Instance{
			Sandboxes:  []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}},
			Containers: []pleg.Container{{ID: "a1", Name: "a", Sandbox: "s1", Attempt: 1, State: rt.ContainerState_CONTAINER_RUNNING}, exit("a", 0, 143, 0, "")}}, Change: renewedSandbox}, ""},
	})
}

func TestWhatARenewalComesTo(t *testing.T) {
	always := v1.RestartPolicyAlways
	web := func() *v1.Pod { return withSidecar(withInit(pod(always, "a", "b"), "i"), "s") }
	here := func() *pleg.Instance {
		return world(exit("i", 0, 0, time.Hour, ""), up("s", 0), up("a", 2), exit("b", 1, 1, 0, ""))
	}
	for _, r := range []struct {
		name, container string
		scene
		want string
	}{
		{"a container that runs", "a", scene{Pod: web(), Accepted: true, Here: here()}, "record kill decision a a2 30s: a restart was asked for; map[a:a2]"},
		{"one that has exited", "b", scene{Pod: web(), Accepted: true, Here: here()}, "record kill decision b b1 30s: a restart was asked for; map[b:b1]"},
		{"a sidecar", "s", scene{Pod: web(), Accepted: true, Here: here()}, "record kill decision s s0 30s: a restart was asked for; map[s:s0]"},
		{"the pod", "", scene{Pod: web(), Accepted: true, Here: here()}, "replace sandbox s0 0s: a restart was asked for; map[a:a2 b:b1 s:s0]"},
		{"an init container", "i", scene{Pod: web(), Accepted: true, Here: here()}, "i is an init container of pod default/web-n: these run again when the whole pod is restarted"},
		{"no container", "x", scene{Pod: web(), Accepted: true, Here: here()}, `unknown: pod default/web-n has no container "x"`},
		{"a pod of which nothing runs", "", scene{Pod: web(), Accepted: true}, "nothing; map[a: b: s:]"},
		{"a container that was not made", "a", scene{Pod: web(), Accepted: true, Here: world()}, "nothing; map[a:]"},
		{"a container of a sandbox that is gone", "a", scene{Pod: web(), Accepted: true, Here: &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s1", Ready: true}}, Containers: []pleg.Container{up("a", 0)}}}, "nothing; map[a:a0]"},
		{"a pod that has ended", "", scene{Pod: web(), Accepted: true, Ended: v1.PodSucceeded}, "pod default/web-n has ended (Succeeded) and does not run again until its manifest changes"},
		{"a pod that is ending", "a", scene{Pod: web(), Accepted: true, Here: here(), Change: func(s *plan.Facts) { s.Known["u"] = s.Known["u"].WithResult(checkpoint.Result{Phase: v1.PodFailed}) }},
			"pod default/web-n has ended (Failed) and does not run again until its manifest changes"},
		{"a pod that goes", "", scene{Pod: web(), Accepted: true, Here: here(), Old: world()}, "the pod is being removed or replaced already"},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := r.scene.Facts()
			a, answer := s.RequestRestart(r.container)
			got := fmt.Sprintf("%s; %v", strings.Join(slices.DeleteFunc([]string{string(a.Do), a.Name, a.ID, fmt.Sprint(a.Grace) + ": " + a.Reason},
				func(s string) bool { return s == "" }), " "), replaces(answer.Restart))
			if a.Do == "" {
				got = "nothing; " + fmt.Sprint(replaces(answer.Restart))
			}
			if e := (*status.Refusal)(nil); errors.As(answer.Err, &e) {
				if got = e.Why; e.Unknown {
					got = "unknown: " + got
				}
			}
			if got != r.want {
				t.Errorf("\n got  %s\n want %s", got, r.want)
			}
		})
	}
}

func replaces(r *status.Restart) map[string]string {
	if r == nil {
		return nil
	}
	return r.Replaces
}
