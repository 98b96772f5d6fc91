package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/manifests/annotations"
)

// made is a container whose variables were made of an object as it was then.
func made(c pleg.Container, of string) pleg.Container {
	c.EnvObjects = of
	return c
}

func TestPlanOfChangedConfig(t *testing.T) {
	now := func(may bool) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Pod.Annotations = map[string]string{annotations.RestartOnConfigChange: "true"}
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
	const restart, reload = `restart with the changed ConfigMap "app"`, `reload with the changed ConfigMap "app"`
	for name, row := range map[string]struct {
		is       pleg.Container
		reaction string
		told     checkpoint.Told
		want     string
	}{
		"one that runs with config of before":                       {made(up("a", 0), "configmap/app=1"), "restart", checkpoint.Told{}, restart},
		"one that reloads":                                          {made(up("a", 0), "configmap/app=1"), "signal:HUP", checkpoint.Told{}, reload},
		"one that was told":                                         {made(up("a", 0), "configmap/app=1"), "signal:HUP", checkpoint.Told{Words: "configmap/app=2"}, ""},
		"one that was told of another one":                          {made(up("a", 0), "configmap/app=2"), "exec:reload", checkpoint.Told{Words: "configmap/app=3"}, reload},
		"one that may have read another one":                        {made(up("a", 0), "configmap/app=2"), "exec:reload", checkpoint.Told{MayHave: []string{"configmap/app=3", "configmap/app=2"}}, reload},
		"one that was told, and is to restart now":                  {made(up("a", 0), "configmap/app=1"), "restart", checkpoint.Told{Words: "configmap/app=2"}, restart},
		"one that was told of another one, and is to restart now":   {made(up("a", 0), "configmap/app=2"), "restart", checkpoint.Told{Words: "configmap/app=3"}, restart},
		"one that may have read another one, and is to restart now": {made(up("a", 0), "configmap/app=2"), "restart", checkpoint.Told{MayHave: []string{"configmap/app=3"}}, restart},
		"one whose kill is decided is no more":                      {renew(made(up("a", 0), "configmap/app=1")), "restart", checkpoint.Told{}, ""},
		"one that does not run":                                     {made(exit("a", 0, 1, 0, ""), "configmap/app=1"), "restart", checkpoint.Told{}, ""},
		"one of which it is not known what it uses":                 {up("a", 0), "restart", checkpoint.Told{}, ""},
	} {
		s := (scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(row.is), Change: func(s *plan.Facts) {
			s.Pod.Annotations = map[string]string{annotations.OnConfigChange: row.reaction}
			s.Env = map[string]string{"a": "configmap/app=2"}
			s.Checkpoint().Told = map[string]checkpoint.Told{row.is.ID: row.told}
		}}).Facts()
		if got := s.Outdated(); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestPlanOfContainersThatReload(t *testing.T) {
	change := func(more func(*plan.Facts)) func(*plan.Facts) {
		return func(s *plan.Facts) {
			s.Pod.Annotations = map[string]string{annotations.OnConfigChange + "/a": "signal:HUP"}
			s.Env, s.Restarts = map[string]string{"a": "configmap/app=2"}, true
			more(s)
		}
	}
	was := func(r plan.Reloading) func(*plan.Facts) {
		return change(func(s *plan.Facts) { s.Reloading = map[string]plan.Reloading{"a0": r} })
	}
	later := func(s *plan.Facts) time.Time { return s.Now.Add(time.Second) }
	always := v1.RestartPolicyAlways
	former := func(change func(*plan.Facts)) scene {
		return scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(made(up("a", 0), "configmap/app=1"), made(up("b", 0), "configmap/app=1")), Change: change}
	}
	young := func(change func(*plan.Facts)) scene {
		c := made(up("a", 0), "configmap/app=1")
		c.Started = c.Started.Add(time.Minute - 500*time.Millisecond)
		return scene{Pod: pod(always, "a"), Accepted: true, Here: world(c), Change: change}
	}
	checkPlans(t, []row{
		{"it is told of the change, and no other one", former(change(func(*plan.Facts) {})), "reload container a a0"},
		{"but not while the gate is shut", former(change(func(s *plan.Facts) { s.Restarts = false })), ""},
		{"nor before a volume shows it that it mounts", former(change(func(s *plan.Facts) {
			s.Pod.Spec.Containers[0].VolumeMounts, s.Former = []v1.VolumeMount{{Name: "v"}}, []string{"v"}
		})), ""},
		{"but without another one", former(change(func(s *plan.Facts) { s.Former = []string{"v"} })), "reload container a a0"},
		{"nor while it is being told", former(was(plan.Reloading{Words: "configmap/app=2"})), ""},
		{"nor before the next try", former(change(func(s *plan.Facts) {
			s.Reloading = map[string]plan.Reloading{"a0": {Words: "configmap/app=2", By: "SIGHUP", Retry: later(s)}}
		})), "|wake in 1s"},
		{"but at once if it is told otherwise now", former(change(func(s *plan.Facts) {
			s.Reloading = map[string]plan.Reloading{"a0": {Words: "configmap/app=2", By: "SIGUSR1", Retry: later(s)}}
		})), "reload container a a0"},
		{"but at once if it has changed again", former(change(func(s *plan.Facts) {
			s.Reloading = map[string]plan.Reloading{"a0": {Words: "configmap/app=3", By: "SIGHUP", Retry: later(s)}}
		})), "reload container a a0"},
		{"nor while its program may not handle signals yet", young(change(func(*plan.Facts) {})), "|wake in 1.5s"},
		{"a clock set back does not make it wait longer", young(change(func(s *plan.Facts) { s.Now = s.Now.Add(-time.Hour) })), "reload container a a0"},
		{"which keeps no command from it", young(change(func(s *plan.Facts) {
			s.Pod.Annotations[annotations.OnConfigChange+"/a"] = "exec:reload"
		})), "reload container a a0"},
		{"one that was told is not told again", former(change(func(s *plan.Facts) {
			s.Checkpoint().Told = map[string]checkpoint.Told{"a0": {Words: "configmap/app=2"}}
		})), ""},
	})
}
