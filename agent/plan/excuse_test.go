package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
)

// killedFor is a container that is stopped for a cause.
func killedFor(cause checkpoint.Cause, c pleg.Container) pleg.Container {
	return plantest.With(c, func(c *pleg.Container) { c.Kill = &checkpoint.KillDecision{Cause: cause} })
}

func TestWhetherOthersRestartAPod(t *testing.T) {
	ended := exit("a", 0, 137, 0, "")
	for _, row := range []struct {
		name string
		here *pleg.Instance
		want bool
	}{
		{"nothing of it is there", nil, false},
		{"it runs", world(up("a", 0)), false},
		{"it crashed", world(ended), false},
		{"its probe failed", world(killedFor(checkpoint.CauseProbe, up("a", 0))), false},
		{"its hook failed", world(killedFor(checkpoint.CauseHook, ended)), false},
		{"a request stops it", world(killedFor(checkpoint.CauseRequest, up("a", 0))), true},
		{"a request stopped it", world(killedFor(checkpoint.CauseRequest, ended)), true},
		{"it runs again after a request", world(up("a", 1), killedFor(checkpoint.CauseRequest, ended)), false},
		{"its ConfigMap has changed", world(killedFor(checkpoint.CauseConfig, ended)), true},
		{"another version of it was accepted", world(killedFor(checkpoint.CauseUpdate, up("a", 0))), true},
		{"its cgroup is gone", world(killedFor(checkpoint.CauseCgroup, ended)), true},
		{"the runtime lost it", world(killedFor(checkpoint.CauseLost, ended)), true},
	} {
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: row.here}.Facts()
		if got := s.RestartsByOthers(); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestWhetherAllIsOfTheDesiredVersion(t *testing.T) {
	outdated := func(c pleg.Container) pleg.Container {
		return plantest.With(c, func(c *pleg.Container) { c.Outdated = true })
	}
	fetches := func(s *plan.Facts) { s.Fetching = map[string]plan.Pull{"a": {}} }
	pulls := func(s *plan.Facts) { s.Failures = map[string]plan.Failure{"a": {Pulls: true}} }
	fails := func(s *plan.Facts) { s.Failures = map[string]plan.Failure{"a": {}} }
	for _, row := range []struct {
		name           string
		here           *pleg.Instance
		change         func(*plan.Facts)
		follows, waits bool
	}{
		{"nothing of it is there", nil, nil, true, false},
		{"it runs", world(up("a", 0)), nil, true, false},
		{"the former one still runs", world(outdated(up("a", 0))), nil, false, false},
		{"the former one has ended", world(outdated(exit("a", 0, 0, 0, ""))), nil, true, false},
		{"the former one has ended, and the image is being pulled", world(outdated(exit("a", 0, 0, 0, ""))), fetches, true, true},
		{"its image is being pulled", world(), fetches, true, true},
		{"and could not be pulled so far", world(), pulls, true, true},
		{"beside another one that runs", world(up("b", 0)), pulls, true, true},
		{"it fails for another reason", world(), fails, true, false},
		{"it crashed, and its image could not be pulled again", world(exit("a", 0, 1, 0, "")), pulls, true, false},
		{"it crashed, and its image is being pulled", world(exit("a", 0, 1, 0, "")), fetches, true, false},
		{"it is not accepted", world(up("a", 0)), func(s *plan.Facts) { s.Unaccepted = s.Now.Add(time.Second) }, false, false},
		{"another one is accepted", world(up("a", 0)), func(s *plan.Facts) { s.Checkpoint().Digest = "another" }, false, false},
	} {
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: row.here, Change: row.change}.Facts()
		if got := s.FollowsDesired(); got != row.follows {
			t.Errorf("%s: it follows: %v", row.name, got)
		}
		if got := s.AwaitsImage(nil); got != row.waits {
			t.Errorf("%s: it waits for an image: %v", row.name, got)
		}
	}
}
