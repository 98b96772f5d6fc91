package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
)

// before says that the accepted version has another image.
func before(s *plan.Facts) {
	c := *s.Known["u"]
	c.Pod, c.Digest = c.Pod.DeepCopy(), "d0"
	c.Pod.Spec.Containers[0].Image = "img:0"
	s.Known["u"] = &c
}

func byReplacing(s *plan.Facts) { s.Policy = "Replace" }

func TestPlanOfChangesOfPodsThatEnd(t *testing.T) {
	always := v1.RestartPolicyAlways
	checkPlans(t, []row{
		{"another version replaces one that has ended", scene{Pod: pod(always, "a"), Accepted: true, Ended: v1.PodFailed, Here: dead(world(exit("a", 0, 1, 0, ""))), Change: before},
			"mark for removal; remove sandbox s0; forget"},
		{"also one that is to end", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: all(settled(checkpoint.Result{Phase: v1.PodFailed}), before)},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"one that means the same does not", scene{Pod: pod(always, "a"), Accepted: true, Digest: "d0", Ended: v1.PodFailed, Here: dead(world(exit("a", 0, 1, 0, "")))}, "update"},
		{"one that runs takes it over", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: before}, "update"},
	})
}

func TestAVersionIsAcceptedInPlace(t *testing.T) {
	for _, row := range []struct {
		name string
		scene
		awaits, accepts bool
	}{
		{"no pod is wanted", scene{Nothing: true}, false, false},
		{"it is new", scene{}, false, false},
		{"it is accepted", scene{Accepted: true, Here: world(up("a", 0))}, false, false},
		{"another one is accepted", scene{Accepted: true, Here: world(up("a", 0)), Change: before}, true, true},
		{"another one is accepted, and goes", scene{Accepted: true, Retired: true, Here: world(up("a", 0)), Change: before}, false, false},
		{"another one is accepted, and is replaced", scene{Accepted: true, Here: world(up("a", 0)), Change: all(before, byReplacing)}, false, false},
	} {
		row.Pod = pod(v1.RestartPolicyAlways, "a")
		s := row.scene.Facts()
		p := plan.Make(s)
		if s.AwaitsAcceptance() != row.awaits || p.Accepts() != row.accepts {
			t.Errorf("%s: awaits %v, accepts %v", row.name, s.AwaitsAcceptance(), p.Accepts())
		}
	}
}

// While a version cannot be saved, the pod goes by the one before.
func TestAVersionThatIsNotSavedDoesNotCount(t *testing.T) {
	fails := func(until time.Time) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Failures = map[string]plan.Failure{plan.Action{Do: plan.DoUpdate, UID: "u"}.Key(): {Retry: until}}
		}
	}
	soon := noon.Add(time.Second)
	for _, row := range []struct {
		name string
		scene
		digest string
		plan   string
	}{
		{"it failed a moment ago", scene{Here: world(up("a", 0)), Change: all(before, fails(soon))}, "d0", "|wake in 1s"},
		{"it is tried again", scene{Here: world(up("a", 0)), Change: all(before, fails(noon))}, "d1", "update"},
		{"it has not failed", scene{Here: world(up("a", 0)), Change: before}, "d1", "update"},
		{"it is accepted", scene{Here: world(up("a", 0)), Change: fails(soon)}, "d1", ""},
		{"the one before goes", scene{Retired: true, Change: all(before, fails(soon))}, "d1", "forget"},
		{"the one before is replaced", scene{Change: all(before, byReplacing, fails(soon))}, "d1", "mark for removal; forget"},
		{"no pod is wanted", scene{Nothing: true}, "", "mark for removal; forget"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.Pod, row.Accepted = pod(v1.RestartPolicyAlways, "a"), true
			s := row.scene.Facts()
			s.ByAccepted()
			digest := ""
			if s.Pod != nil {
				digest = s.Pod.Digest
			}
			if got := decided(t, s); digest != row.digest || got != row.plan {
				t.Errorf("goes by %q, want %q\n got  %s\n want %s", digest, row.digest, got, row.plan)
			}
		})
	}
}

// A container that started before it had a hook is not to run it.
func TestContainersThatStartedWithoutTheirHook(t *testing.T) {
	p := hookedBy(pod(v1.RestartPolicyAlways, "runs", "had", "none", "exited", "missing"), "runs", "had", "exited", "missing")
	s := scene{Pod: p, Accepted: true, Here: world(up("runs", 0), up("had", 0), up("none", 0), exit("exited", 0, 1, 0, ""))}.Facts()
	was := hookedBy(pod(v1.RestartPolicyAlways, "runs", "had", "none", "exited", "missing"), "had")
	c := *s.Known["u"]
	c.Pod, c.Digest = was, "d0"
	s.Known["u"] = &c
	for _, a := range slices.Concat(plan.Make(s).Steps...) {
		if a.Do != plan.DoUpdate || fmt.Sprint(a.Hooked) != "map[runs:runs0]" {
			t.Errorf("%s: %v", a, a.Hooked)
		}
	}
}

func TestWhetherAPodIsResized(t *testing.T) {
	failed := func(a plan.Action, reason string) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Failures = map[string]plan.Failure{a.Key(): {Waiting: plan.Waiting{Reason: reason, Message: message.Fixed("no")}}}
		}
	}
	resize, settle := plan.Action{Do: plan.DoResize, ID: "a0"}, plan.Action{Do: plan.DoSettle, UID: "u"}
	of := follows(checkpoint.Following{Resize: []string{"missing", "a"}})
	for _, row := range []struct {
		name    string
		change  func(*plan.Facts)
		resizes bool
		why     string
	}{
		{"nothing follows", func(*plan.Facts) {}, false, ": "},
		{"something else follows", follows(checkpoint.Following{}), false, ": "},
		{"a container is to be resized", of, true, ": "},
		{"its resize has failed", all(of, failed(resize, plan.ReasonRefused)), true, "Error: no"},
		{"its resize has failed, and is not worth a word", all(of, failed(resize, "")), true, ": "},
		{"the pod uses more than it is to have", all(follows(checkpoint.Following{}), failed(settle, plan.ReasonInUse)), true, "Error: no"},
		{"its cgroup fails otherwise", all(follows(checkpoint.Following{}), failed(settle, plan.ReasonFault)), false, ": "},
	} {
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(up("a", 0)), Change: row.change}.Facts()
		w, resizes := s.Resizing()
		if why := w.Reason + ": " + w.Message.String(); resizes != row.resizes || why != row.why {
			t.Errorf("%s: %v, %s", row.name, resizes, why)
		}
	}
}
