package plan_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
)

// made is a container whose variables were made of an object as it was then.
func made(c pleg.Container, of string) pleg.Container {
	c.EnvObjects = of
	return c
}

func TestPlanOfChangedConfig(t *testing.T) {
	now := func(may bool) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Env, s.Restarts = map[string]string{"a": "configmap/app=2"}, may
		}
	}
	always := v1.RestartPolicyAlways
	checkPlans(t, []row{
		{"a container runs on with its former config until it may restart", scene{Pod: pod(always, "a", "b"), Accepted: true,
			Here: world(made(up("a", 0), "configmap/app=1"), up("b", 0)), Change: now(false)}, ""},
		{"then it is killed for that", scene{Pod: pod(always, "a", "b"), Accepted: true,
			Here: world(made(up("a", 0), "configmap/app=1"), up("b", 0)), Change: now(true)}, "record kill decision a a0 in 30s; stop container a a0 in 30s"},
		{"one that runs with the present config is not", scene{Pod: pod(always, "a"), Accepted: true,
			Here: world(made(up("a", 0), "configmap/app=2")), Change: now(true)}, ""},
		{"one that crashed starts whether or not others may restart", scene{Pod: pod(always, "a"), Accepted: true,
			Here: world(made(exit("a", 0, 1, 0, ""), "configmap/app=1")), Change: now(false)}, "start container a#1 after 0s"},
	})
}

func TestWhichConfigIsOutdated(t *testing.T) {
	for name, row := range map[string]struct {
		is   pleg.Container
		want string
	}{
		"one that runs with config of before":       {made(up("a", 0), "configmap/app=1"), `ConfigMap "app"`},
		"one whose kill is decided is no more":      {renew(made(up("a", 0), "configmap/app=1")), ""},
		"one that does not run":                     {made(exit("a", 0, 1, 0, ""), "configmap/app=1"), ""},
		"one of which it is not known what it uses": {up("a", 0), ""},
	} {
		s := (scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(row.is), Change: func(s *plan.Facts) {
			s.Env = map[string]string{"a": "configmap/app=2"}
		}}).Facts()
		if got := s.Outdated(); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
