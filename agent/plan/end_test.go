package plan_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/manifests/annotations"
)

// active gives the pod a deadline and says for how long it has been active.
func active(deadline int64, ago time.Duration) func(*plan.Facts) {
	return func(s *plan.Facts) {
		s.Pod.Spec.ActiveDeadlineSeconds = &deadline
		s.Mark = checkpoint.Mark{Boot: "b", Up: 2 * time.Hour}
		c := *s.Known["u"]
		c.Active = &checkpoint.Active{Mark: s.Mark, Before: ago}
		s.Known["u"] = &c
	}
}

func settled(v checkpoint.Result) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Known["u"] = s.Known["u"].WithResult(v) }
}

func TestPlanOfEnds(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	oom := func(name string, code int32) pleg.Container {
		c := exit(name, 0, code, 0, "")
		c.Reason = "OOMKilled"
		return c
	}
	job := func(of v1.RestartPolicy, limit int32, pod *v1.Pod) *v1.Pod {
		pod.Spec.RestartPolicy = of
		annotations.SetJobRetries(pod, limit)
		return pod
	}
	checkPlans(t, []row{
		// Jobs.
		{"a Job of Never waits before its first retry", scene{Pod: job(never, 6, pod(never, "a")), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "|a waits: CrashLoopBackOff|wake in 10s"},
		{"and is then run again in its sandbox", scene{Pod: job(never, 6, pod(never, "a")), Accepted: true, Here: world(exit("a", 0, 1, 10*time.Second, ""))}, "start container a#1 after 10s"},
		{"each time after twice as long", scene{Pod: job(never, 6, pod(never, "a")), Accepted: true, Here: world(exit("a", 1, 1, 20*time.Second, "10s"))}, "start container a#2 after 20s"},
		{"after at most six minutes", scene{Pod: job(never, 9, pod(never, "a")), Accepted: true, Here: world(exit("a", 7, 1, 0, "6m0s"))}, "|a waits: CrashLoopBackOff|wake in 6m0s"},
		{"also after a long run", scene{Pod: job(never, 9, pod(never, "a")), Accepted: true, Here: world(with(exit("a", 1, 1, 0, "40s"), func(c *pleg.Container) { c.Started = noon.Add(-time.Hour) }))}, "|a waits: CrashLoopBackOff|wake in 1m20s"},
		{"a Job of OnFailure is as another pod at first", scene{Pod: job(onFailure, 6, pod(onFailure, "a")), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s"},
		{"a Job that succeeds has succeeded", scene{Pod: job(never, 6, pod(never, "a")), Accepted: true, Here: world(exit("a", 6, 0, 0, ""))}, "stop sandbox s0; end Succeeded"},
		{"the last retry of a Job that fails fails it", scene{Pod: job(never, 6, pod(never, "a")), Accepted: true, Here: world(exit("a", 6, 1, 0, "40s"))}, "stop sandbox s0; end Failed BackoffLimitExceeded"},
		{"it takes the others along", scene{Pod: job(onFailure, 1, pod(onFailure, "a", "b")), Accepted: true, Here: world(up("a", 0), exit("b", 1, 1, 0, "0s"))},
			"record result Failed BackoffLimitExceeded; stop container a a0 in 30s; stop sandbox s0"},
		{"without retries it is the first", scene{Pod: job(onFailure, 0, pod(onFailure, "a")), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "stop sandbox s0; end Failed BackoffLimitExceeded"},
		{"an init container of a Job counts, too", scene{Pod: job(never, 2, withInit(pod(never, "a"), "i")), Accepted: true, Here: world(exit("i", 2, 1, 0, "20s"))}, "stop sandbox s0; end Failed BackoffLimitExceeded"},
		{"one that has succeeded does not", scene{Pod: job(never, 0, withInit(pod(never, "a"), "i")), Accepted: true, Here: world(exit("i", 0, 0, 0, ""))}, "start container a#0"},
		{"one whose failure was not its last", scene{Pod: job(never, 2, withInit(pod(never, "a"), "i")), Accepted: true, Here: world(exit("i", 1, 1, time.Minute, "10s"))}, "start container i#2 after 20s"},

		// Deadlines.
		{"before its deadline a pod is looked at then", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: active(60, 50*time.Second)}, "|wake in 10s"},
		{"at its deadline a pod is ended with its grace", scene{Pod: pod(always, "a"), Accepted: true, Here: world(preStops(up("a", 0))), Change: active(60, time.Minute)},
			"record result Failed DeadlineExceeded; stop container a a0 in 30s with preStop; stop sandbox s0"},
		{"even one that has not come up", scene{Pod: pod(always, "a"), Accepted: true, Change: active(60, time.Minute)}, "end Failed DeadlineExceeded"},
		{"even one in back-off", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 1, 1, 0, "0s")), Change: active(60, time.Minute)}, "stop sandbox s0; end Failed DeadlineExceeded"},
		{"one in back-off wakes for whatever comes first", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 1, 1, 0, "0s")), Change: active(60, 55*time.Second)}, "|a waits: CrashLoopBackOff|wake in 5s"},
		{"a pod whose work was done has no deadline", scene{Pod: pod(never, "a"), Accepted: true, Here: world(exit("a", 0, 0, 0, "")), Change: active(60, time.Hour)}, "stop sandbox s0; end Succeeded"},
		{"a pod that has ended has none either", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodSucceeded, Change: active(60, time.Hour)}, ""},
		{"a container that answers the deadline with success does not make it one", scene{Pod: pod(never, "a"), Accepted: true, Here: world(exit("a", 0, 0, 0, "")),
			Change: settled(checkpoint.Result{Phase: v1.PodFailed, Reason: "DeadlineExceeded"})}, "stop sandbox s0; end Failed DeadlineExceeded"},

		// Verdicts.
		{"what was settled goes on after an agent's death", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(up("a", 0), exit("b", 0, 0, 0, "")), Change: settled(checkpoint.Result{Phase: v1.PodFailed})},
			"stop container a a0 in 30s; stop sandbox s0"},
		{"what was settled is not undone by a lost sandbox", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(exit("a", 0, 255, 0, ""))), Change: settled(checkpoint.Result{Phase: v1.PodFailed})}, "stop sandbox s0; end Failed"},
		{"a Never pod whose containers outlive their sandbox has failed", scene{Pod: pod(never, "a"), Accepted: true, Here: dead(world(up("a", 0)))},
			"record result Failed; stop container a a0 in 30s; stop sandbox s0"},
		{"a failed init container takes the sidecars along", scene{Pod: withInit(withSidecar(pod(never, "a"), "s"), "i"), Accepted: true, Here: world(up("s", 0), exit("i", 0, 1, 0, ""))},
			"record result Failed; stop container s s0 in 30s; stop sandbox s0"},

		// Memory.
		{"an init container killed for memory is restarted even with 0", scene{Pod: withInit(pod(onFailure, "a"), "i"), Accepted: true, Here: world(oom("i", 0))}, "start container i#1 after 0s"},
		{"a regular one that exited with 0 is done, whatever was killed in it", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: world(oom("a", 0))}, "stop sandbox s0; end Succeeded"},
		{"one that was killed itself is restarted", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: world(oom("a", 137))}, "start container a#1 after 0s"},
	})
}

// An end says to a person why.
func TestEndsSayWhy(t *testing.T) {
	always, never := v1.RestartPolicyAlways, v1.RestartPolicyNever
	booted := func(s *plan.Facts) {
		s.Mark.Boot, s.Known["u"].Boot = "now", "before"
	}
	cgroupGone := func(s *plan.Facts) { s.CgroupGone = true }
	for _, row := range []struct {
		name string
		scene
		want string
	}{
		{"all is done", scene{Pod: pod(never, "a"), Here: world(exit("a", 0, 0, 0, ""))}, "all containers have succeeded"},
		{"one of two has failed", scene{Pod: pod(never, "a", "b"), Here: world(exit("a", 0, 0, 0, ""), exit("b", 0, 3, 0, ""))}, "container b exited with 3 (Error) and does not restart"},
		{"its sandbox is dead", scene{Pod: pod(never, "a"), Here: dead(world(exit("a", 0, 255, 0, "")))}, "container a exited with 255 (Error) and does not restart"},
		{"its sandbox is dead, and a container is missing", scene{Pod: pod(never, "a", "b"), Here: dead(world(exit("a", 0, 0, 0, "")))}, "a container is missing and does not restart"},
		{"its deadline is over", scene{Pod: pod(always, "a"), Here: world(up("a", 0)), Change: active(60, time.Minute)}, "it was active for its 60 seconds"},
		{"its cgroup is gone", scene{Pod: pod(never, "a"), Here: world(up("a", 0)), Change: cgroupGone}, "its pod's cgroup is gone"},
		{"it ran in an earlier boot", scene{Pod: pod(never, "a", "b"), Logged: map[string]uint32{"a": 0, "b": 1}, Change: booted}, "it ran before the machine booted, and does not restart"},
		{"it ran in an earlier boot, and its sandbox is left", scene{Pod: pod(never, "a"), Logged: map[string]uint32{"a": 1}, Here: dead(world()), Change: booted}, "it ran before the machine booted, and does not restart"},
		{"it was accepted in an earlier boot, and did not run", scene{Pod: pod(never, "a"), Logged: map[string]uint32{"a": 0}, Change: booted}, ""},
		{"it ran in this boot", scene{Pod: pod(never, "a"), Logged: map[string]uint32{"a": 1}}, ""},
		{"it is to run again", scene{Pod: pod(always, "a"), Logged: map[string]uint32{"a": 1}, Change: booted}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.Accepted = true
			got := ""
			for _, a := range slices.Concat(plan.Make(row.scene.Facts()).Steps...) {
				if a.Do == plan.DoEnd || a.Do == plan.DoRecordResult {
					got = a.Reason
				}
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// The boot of a pod is kept that must not run twice, or starts after others.
func TestWhoseBootIsKept(t *testing.T) {
	after := pod(v1.RestartPolicyAlways, "a")
	after.Annotations = map[string]string{annotations.StartAfter: "db"}
	for name, row := range map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"one that restarts":           {pod(v1.RestartPolicyAlways, "a"), false},
		"one that never restarts":     {pod(v1.RestartPolicyNever, "a"), true},
		"one that starts after other": {after, true},
	} {
		if got := plan.NotesBoot(row.pod); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
