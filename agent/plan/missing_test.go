package plan_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
)

func TestAReportedAttemptThatIsGoneMakesOlderOnesSayNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		here *pleg.Instance
		last string
		next uint32
		want string
	}{
		{"the reported one is there", world(exit("a", 2, 0, 0, "0s")), "a#2 exited 0", 0, "stop sandbox s0; end Succeeded"},
		{"one of its number is there under another id", world(with(exit("a", 2, 0, 0, "0s"), func(c *pleg.Container) { c.ID = "x" })), "a#2 exited 0", 0, "stop sandbox s0; end Succeeded"},
		{"a newer one is there", world(exit("a", 3, 0, 0, "0s")), "a#2 running", 0, "stop sandbox s0; end Succeeded"},
		{"only an older one is there", world(exit("a", 1, 0, 0, "0s")), "a#2 running", 3, "start container a#3"},
		{"an older one that lives is not doubled", world(up("a", 1)), "a#2 running", 0, ""},
		{"nothing is there", world(), "a#2 running", 3, "start container a#3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := pod(v1.RestartPolicyOnFailure, "a")
			s := scene{Pod: p, Accepted: true, Here: row.here}.Facts()
			s.Next = s.FindMissing(plantest.Reported(p, row.last))
			if got := told(plan.Make(s)); got != row.want || s.Next["a"] != row.next {
				t.Errorf("next %d, want %d\n got  %s\n want %s", s.Next["a"], row.next, got, row.want)
			}
		})
	}
}
