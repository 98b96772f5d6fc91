package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
)

// changed makes the accepted version the second one, with another container since then;
// those that are there are of the first version.
func changed(name string, since int) func(*plan.Facts) {
	return func(s *plan.Facts) {
		c := s.Checkpoint()
		c.Revision, c.Changed = 1, map[string]int{name: since}
		s.Instance().MarkAccepted(c)
	}
}

func follows(f checkpoint.Following) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Checkpoint().Revision, s.Checkpoint().Following = 1, &f }
}

func refusedResize(name string, times int) func(*plan.Facts) {
	return func(s *plan.Facts) {
		follows(checkpoint.Following{Resize: []string{name}, Raised: true})(s)
		a := plan.Action{Do: plan.DoResize, ID: s.Instance().Newest(name).ID}
		s.Failures = map[string]plan.Failure{a.Key(): {Count: times, Waiting: plan.Waiting{Reason: plan.ReasonRefused, Message: message.Private("no")}}}
	}
}

// oldGoes says that the former instance is marked as going, oldIsGone that nothing of it is left
// in the runtime.
func oldGoes(s *plan.Facts) {
	s.Known["old"] = s.Known["old"].Removing(metav1.Time{Time: noon}, checkpoint.Mark{})
}
func oldIsGone(s *plan.Facts) { delete(s.Observed.Instances, "old") }

// makes says that a container of an instance is being started.
func makes(uid string) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Running = map[string]plan.Running{"x": {UID: uid, Makes: true}} }
}

func dead(i *pleg.Instance) *pleg.Instance {
	for k := range i.Sandboxes {
		i.Sandboxes[k].Ready = false
	}
	return i
}

// told writes a plan in one line: steps are separated by "; ", actions by ", ".
func told(p plan.Plan) string {
	var steps []string
	for _, step := range p.Steps {
		var acts []string
		for _, a := range step {
			t := string(a.Do)
			for _, s := range []string{a.Name, a.ID} {
				if s != "" {
					t += " " + s
				}
			}
			if a.Do == plan.DoCreateSandbox || a.Do == plan.DoStartContainer {
				t += fmt.Sprintf("#%d", a.Attempt)
			}
			if a.Grace != 0 {
				t += " in " + a.Grace.String()
			}
			if a.BackOff != "" {
				t += " after " + a.BackOff
			}
			t += toldMore(a)
			acts = append(acts, t)
		}
		slices.Sort(acts)
		steps = append(steps, strings.Join(acts, ", "))
	}
	out := strings.Join(steps, "; ")
	if p.Gone {
		out += "gone"
	}
	for _, name := range slices.Sorted(mapKeys(p.Waiting)) {
		out += fmt.Sprintf("|%s waits: %s", name, p.Waiting[name].Reason)
	}
	if !p.Wake.IsZero() {
		out += fmt.Sprintf("|wake in %s", p.Wake.Sub(noon))
	}
	return out
}

func mapKeys(m map[string]plan.Waiting) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestPlan(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	exited, created, unknown := rt.ContainerState_CONTAINER_EXITED, rt.ContainerState_CONTAINER_CREATED, rt.ContainerState_CONTAINER_UNKNOWN
	_ = exited
	for _, row := range []struct {
		name string
		scene
		want string
	}{
		// Coming.
		{"a new pod is accepted, set up, and its containers start together", scene{Pod: pod(always, "a", "b")},
			"accept; set up; create sandbox#0; start container a#0, start container b#0"},
		{"an accepted pod of which nothing was made is made", scene{Pod: pod(always, "a"), Accepted: true},
			"set up; create sandbox#0; start container a#0"},
		{"a sandbox without checkpoint is accepted as it is", scene{Pod: pod(always, "a"), Here: world(up("a", 0))}, "accept"},
		{"a pod that runs is left alone", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(up("a", 0), up("b", 3))}, ""},
		{"a container that is missing is started", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(up("a", 0))}, "start container b#0"},
		{"a container that was created and not started is started", scene{Pod: pod(always, "a"), Accepted: true, Here: world(in(created, "a"))}, "resume container a a0"},
		{"a container of which logs are left goes on counting", scene{Pod: pod(always, "a"), Accepted: true, Here: world(), Logged: map[string]uint32{"a": 4}}, "start container a#4"},
		{"a container that the runtime lost track of is stopped first", scene{Pod: pod(always, "a"), Accepted: true, Here: world(in(unknown, "a"))}, "stop container a a0 in 30s"},

		{"a new pod whose checkpoint cannot be written waits", scene{Pod: pod(always, "a"), Failures: map[string]plan.Failure{"": {Retry: noon.Add(time.Second)}}}, "|wake in 1s"},
		{"a pod known from the runtime alone goes on while its checkpoint cannot be written", scene{Pod: pod(always, "a"), Here: world(exit("a", 0, 1, 0, "")), Failures: map[string]plan.Failure{"": {Retry: noon.Add(time.Second)}}},
			"start container a#1 after 0s|wake in 1s"},

		// Going.
		{"nothing wanted and nothing there is gone", scene{Pod: pod(always, "a"), Nothing: true}, "gone"},
		{"a pod whose manifest is gone is retired, stopped and removed", scene{Pod: pod(always, "a", "b"), Nothing: true, Accepted: true, Here: world(up("a", 0), up("b", 0))},
			"mark for removal; stop container a a0 in 30s, stop container b b0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"a retirement goes on where it was", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Here: dead(world(exit("a", 0, 0, time.Second, "")))},
			"remove sandbox s0; forget"},
		{"a pod that was never made is forgotten", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true}, "mark for removal; forget"},
		{"a pod without checkpoint is stopped with the grace that its container carries", scene{Pod: pod(always, "a"), Nothing: true, Here: world(up("a", 0))},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"sidecars stop last, the later one first, all within one grace", scene{Pod: withSidecar(withSidecar(pod(always, "a"), "s1"), "s2"), Nothing: true, Accepted: true, Here: world(up("a", 0), up("s1", 0), up("s2", 0))},
			"mark for removal; stop container a a0 in 30s, stop container s1 s10 in 30s behind a0 s20, stop container s2 s20 in 30s behind a0; stop sandbox s0; remove sandbox s0; forget"},
		{"a grace below two seconds is two seconds", scene{Pod: pod(always, "a"), Nothing: true, Here: world(pleg.Container{ID: "a0", Name: "a", State: rt.ContainerState_CONTAINER_RUNNING, Grace: time.Second})},
			"stop container a a0 in 2s; stop sandbox s0; remove sandbox s0; forget"},

		// Replacing.
		{"an old instance goes before the new one comes", scene{Pod: pod(always, "a"), Old: world(up("a", 0))},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"an old instance goes even if the new one runs", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Old: dead(world())},
			"mark for removal; remove sandbox s0; forget"},
		{"another content under the same uid replaces the instance", scene{Pod: pod(always, "a"), Accepted: true, Digest: "d0", Here: world(up("a", 0)), Change: func(s *plan.Facts) { s.Policy = "Replace" }},
			"mark for removal; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"or is accepted in place of the former, before anything is done", scene{Pod: pod(always, "a"), Accepted: true, Digest: "d0", Here: world(up("a", 0))}, "update"},
		{"what has changed is a container: it stops, the other runs on", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(up("a", 0), up("b", 0)), Change: changed("a", 1)}, "stop container a a0 in 30s"},
		{"and starts again at once", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(exit("a", 0, 137, 0, "40s"), up("b", 0)), Change: changed("a", 1)}, "start container a#1"},
		{"even if it would not restart", scene{Pod: pod(never, "a", "b"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), up("b", 0)), Change: changed("a", 1)}, "start container a#1"},
		{"one that never started is removed first", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(in(created, "a"), up("b", 0)), Change: changed("a", 1)}, "remove container a a0"},
		{"an attempt of the accepted version runs on", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(up("a", 0), up("b", 0)), Change: changed("a", 0)}, ""},
		{"volumes and the cgroup come before a resize", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: follows(checkpoint.Following{Resize: []string{"a"}})}, "follow"},
		{"then the containers are resized", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: follows(checkpoint.Following{Resize: []string{"a"}, Raised: true})}, "resize container a a0"},
		{"one that starts later needs no resize", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, "")), Change: follows(checkpoint.Following{Resize: []string{"a"}, Raised: true})}, "settle; start container a#1 after 0s"},
		{"and at last the cgroup shrinks", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: follows(checkpoint.Following{Raised: true})}, "settle"},
		{"a resize that is refused becomes a restart", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: refusedResize("a", 3)}, "restart resized a a0"},
		{"but not of a container that the resize was refused for after all", scene{Pod: pod(always, "a"), Accepted: true, Here: world(with(up("a", 0), func(c *pleg.Container) { c.Revision = 1 })), Change: refusedResize("a", 3)}, "resize container a a0"},
		{"nor of a container that runs once", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: refusedResize("a", 3)}, "resize container a a0"},
		{"a retired instance of which nothing is there goes before it comes again", scene{Pod: pod(always, "a"), Accepted: true, Retired: true}, "forget"},
		{"a former instance that goes is stopped first", scene{Pod: pod(always, "a"), Old: world(up("a", 0)), Change: oldGoes},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},
		{"the files of a former instance go beside the new one", scene{Pod: pod(always, "a"), Accepted: true, Old: world(), Change: all(oldGoes, oldIsGone)},
			"set up; create sandbox#0; start container a#0; forget"},
		{"but not while something of it is being made", scene{Pod: pod(always, "a"), Accepted: true, Old: world(), Change: all(oldGoes, oldIsGone, makes("old"))}, ""},
		{"what is made of another one does not matter", scene{Pod: pod(always, "a"), Accepted: true, Old: world(), Change: all(oldGoes, oldIsGone, makes("other"))},
			"set up; create sandbox#0; start container a#0; forget"},
		{"nor while the runtime was not asked", scene{Pod: pod(always, "a"), Accepted: true, Old: world(), Change: all(oldGoes, oldIsGone, func(s *plan.Facts) { s.Unseen = true })}, "forget"},
		{"a pod that is removed is not forgotten while something of it is being made", scene{Pod: pod(always, "a"), Nothing: true, Accepted: true, Retired: true, Change: makes("u")}, ""},
		{"a retired instance goes even if it is wanted again", scene{Pod: pod(always, "a"), Accepted: true, Retired: true, Here: world(up("a", 0))},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0; forget"},

		// Restarting.
		{"a first crash restarts at once", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s"},
		{"a second crash waits ten seconds", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 1, 1, 3*time.Second, "0s"))}, "|a waits: CrashLoopBackOff|wake in 7s"},
		{"after ten seconds it starts, marked", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 1, 1, 10*time.Second, "0s"))}, "start container a#2 after 10s"},
		{"the wait doubles", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 2, 1, 10*time.Second, "10s"))}, "|a waits: CrashLoopBackOff|wake in 10s"},
		{"the wait is five minutes at most", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 9, 1, 0, "5m0s"))}, "|a waits: CrashLoopBackOff|wake in 5m0s"},
		{"after ten minutes' run a crash counts as the first", scene{Pod: pod(always, "a"), Accepted: true, Here: world(func() pleg.Container {
			c := exit("a", 5, 1, 0, "2m40s")
			c.Started = c.Finished.Add(-11 * time.Minute)
			return c
		}())}, "start container a#6 after 0s"},
		{"after ten minutes' run to the second it does not", scene{Pod: pod(always, "a"), Accepted: true, Here: world(with(exit("a", 5, 1, 0, "2m40s"), func(c *pleg.Container) { c.Started = c.Finished.Add(-10 * time.Minute) }))},
			"|a waits: CrashLoopBackOff|wake in 5m0s"},
		{"a start that failed waits like a crash", scene{Pod: pod(always, "a"), Accepted: true, Here: world(func() pleg.Container {
			c := exit("a", 1, 128, 0, "0s")
			c.Reason, c.Started = "StartError", time.Time{}
			return c
		}())}, "|a waits: CrashLoopBackOff|wake in 10s"},
		{"a start that was broken off does not wait", scene{Pod: pod(always, "a"), Accepted: true, Here: world(with(exit("a", 1, 128, 0, "0s"), broken))}, "start container a#2 after 0s"},
		{"nor does it end a pod under Never", scene{Pod: pod(never, "a"), Accepted: true, Here: world(with(exit("a", 0, 128, 0, ""), broken))}, "start container a#1"},
		{"a clock set back does not make it wait longer", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 1, 1, -24*time.Hour, "0s"))}, "|a waits: CrashLoopBackOff|wake in 10s"},
		{"exit code 0 restarts under Always", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""))}, "start container a#1 after 0s"},
		{"exit code 1 restarts under OnFailure", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s"},
		{"one container's back-off does not hold another", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(exit("a", 1, 1, 0, "0s"), exit("b", 0, 1, 0, ""))}, "start container b#1 after 0s|a waits: CrashLoopBackOff|wake in 10s"},
		{"a dead attempt that has a dead successor is removed", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 1, time.Minute, ""), exit("a", 1, 1, 0, "0s"))}, "remove container a a0|a waits: CrashLoopBackOff|wake in 10s"},
		{"the last dead attempt of a running container is kept", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 1, time.Minute, ""), up("a", 1))}, ""},

		// Ending.
		{"exit code 0 ends a pod under OnFailure", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""))}, "stop sandbox s0; end Succeeded"},
		{"exit code 1 ends a pod under Never", scene{Pod: pod(never, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))}, "stop sandbox s0; end Failed"},
		{"a pod ends when its last container has", scene{Pod: pod(never, "a", "b"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), up("b", 0))}, ""},
		{"one failure of two fails the pod", scene{Pod: pod(never, "a", "b"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), exit("b", 0, 3, 0, ""))}, "stop sandbox s0; end Failed"},
		{"a sidecar is stopped when the work is done", scene{Pod: withSidecar(pod(never, "a"), "s"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), up("s", 0))}, "record result Succeeded; stop container s s0 in 30s; stop sandbox s0"},
		{"when the sidecar has stopped the pod has ended", scene{Pod: withSidecar(pod(never, "a"), "s"), Accepted: true, Here: dead(world(exit("a", 0, 0, 0, ""), exit("s", 0, 0, 0, "")))}, "stop sandbox s0; end Succeeded"},
		{"a dead sidecar is not restarted when the work is done", scene{Pod: withSidecar(pod(never, "a"), "s"), Accepted: true, Here: world(exit("a", 0, 0, 0, ""), exit("s", 0, 1, 0, ""))}, "stop sandbox s0; end Succeeded"},
		{"a pod that has ended stays ended", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodFailed, Here: dead(world(exit("a", 0, 1, 0, "")))}, ""},
		{"a pod that has ended stays ended without anything left of it", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodSucceeded}, ""},
		{"what still lives of a pod that has ended is stopped", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodFailed, Here: world(up("a", 0))}, "stop container a a0 in 30s; stop sandbox s0"},

		// Sandboxes.
		{"a dead sandbox is replaced by the next attempt", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(exit("a", 0, 255, 0, "")))}, "stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"a crash-looping container does not wait after its sandbox died", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(exit("a", 5, 255, 0, "2m40s")))}, "stop sandbox s0; set up; create sandbox#1; start container a#6 after 2m40s"},
		{"containers that outlive their sandbox are stopped", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(up("a", 0)))}, "stop container a a0 in 30s; stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"a container never started in a dead sandbox makes way", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(in(created, "a")))}, "stop sandbox s0; remove container a a0; set up; create sandbox#1; start container a#0"},
		{"its successor takes its number and its log, also when all attempts before are gone", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(pleg.Container{ID: "a1", Name: "a", Attempt: 1, State: created}))}, "stop sandbox s0; remove container a a1; set up; create sandbox#1; start container a#1"},
		{"two ready sandboxes are one too many", scene{Pod: pod(always, "a"), Accepted: true, Here: &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, HostNetwork: true}, {ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}}}},
			"stop sandbox s0, stop sandbox s1; set up; create sandbox#2; start container a#0"},
		{"a sandbox on the wrong network is replaced", scene{Pod: pod(always, "a"), Accepted: true, Here: &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.0.0.2"}}}}},
			"stop sandbox s0; set up; create sandbox#1; start container a#0"},
		{"a Never pod that lost its sandbox has failed", scene{Pod: pod(never, "a"), Accepted: true, Here: dead(world(exit("a", 0, 255, 0, "")))}, "stop sandbox s0; end Failed"},
		{"an OnFailure pod that was done keeps done without a sandbox", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: dead(world(exit("a", 0, 0, 0, "")))}, "stop sandbox s0; end Succeeded"},
		{"an OnFailure pod starts again only what was not done", scene{Pod: pod(onFailure, "a", "b"), Accepted: true, Here: dead(world(exit("a", 0, 0, 0, ""), exit("b", 0, 255, 0, "")))}, "stop sandbox s0; set up; create sandbox#1; start container b#1"},
		{"a sandbox that could not be made is tried again later", scene{Pod: pod(always, "a"), Accepted: true, Failures: map[string]plan.Failure{"": {Retry: noon.Add(time.Second)}}}, "|wake in 1s"},
		{"an empty dead sandbox is removed", scene{Pod: pod(always, "a"), Accepted: true, Here: &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}}, Containers: []pleg.Container{{ID: "a0", Name: "a", Sandbox: "s1", State: rt.ContainerState_CONTAINER_RUNNING}}}}, "remove sandbox s0"},

		// Init containers.
		{"the first init container starts alone", scene{Pod: withInit(pod(always, "a"), "i", "j")}, "accept; set up; create sandbox#0; start container i#0"},
		{"while one runs the next one waits", scene{Pod: withInit(pod(always, "a"), "i", "j"), Accepted: true, Here: world(up("i", 0))}, ""},
		{"when one is done the next one starts", scene{Pod: withInit(pod(always, "a"), "i", "j"), Accepted: true, Here: world(exit("i", 0, 0, 0, ""))}, "start container j#0"},
		{"when all are done the regular ones start", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: world(exit("i", 0, 0, 0, ""))}, "start container a#0"},
		{"one that fails is restarted", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: world(exit("i", 0, 1, 0, ""))}, "start container i#1 after 0s"},
		{"one that fails again waits", scene{Pod: withInit(pod(onFailure, "a"), "i"), Accepted: true, Here: world(exit("i", 1, 1, 0, "0s"))}, "|i waits: CrashLoopBackOff|wake in 10s"},
		{"one that fails under Never fails the pod", scene{Pod: withInit(pod(never, "a"), "i"), Accepted: true, Here: world(exit("i", 0, 1, 0, ""))}, "stop sandbox s0; end Failed"},
		{"one killed for memory has failed even with 0", scene{Pod: withInit(pod(never, "a"), "i"), Accepted: true, Here: world(pleg.Container{ID: "i0", Name: "i", Sandbox: "s0", State: exited, Reason: "OOMKilled"})}, "stop sandbox s0; end Failed"},
		{"a removed init container does not run again in the same sandbox", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: world(up("a", 0))}, ""},
		{"an earlier one that was removed is known by the later one", scene{Pod: withInit(pod(always, "a"), "i", "j"), Accepted: true, Here: world(exit("j", 0, 0, 0, ""))}, "start container a#0"},
		{"a new sandbox runs them all again", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: dead(world(exit("i", 0, 0, time.Hour, ""), exit("a", 0, 255, 0, "")))}, "stop sandbox s0; set up; create sandbox#1; start container i#1"},
		{"a done one of an older sandbox does not count in the present one", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: &pleg.Instance{
			Sandboxes:  []pleg.Sandbox{{ID: "s1", Attempt: 1, Ready: true, HostNetwork: true}, {ID: "s0"}},
			Containers: []pleg.Container{exit("i", 0, 0, time.Hour, ""), exit("a", 0, 255, 0, "")}}}, "start container i#1"},
		{"a restarted regular container does not run them again", scene{Pod: withInit(pod(always, "a"), "i"), Accepted: true, Here: world(exit("i", 0, 0, time.Hour, ""), exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s"},

		// Sidecars.
		{"a sidecar that runs lets the next one start", scene{Pod: withInit(withSidecar(pod(always, "a"), "s"), "i"), Accepted: true, Here: world(up("s", 0))}, "start container i#0"},
		{"a sidecar that died is restarted while the pod runs", scene{Pod: withSidecar(pod(always, "a"), "s"), Accepted: true, Here: world(up("a", 0), exit("s", 0, 0, 0, ""))}, "start container s#1 after 0s"},

		{"an earlier one in back-off does not hold a regular one that crashed", scene{Pod: withSidecar(withSidecar(pod(always, "a"), "s"), "last"), Accepted: true, Here: world(exit("s", 1, 1, 0, "0s"), up("last", 0), exit("a", 0, 1, 0, ""))}, "start container a#1 after 0s|s waits: CrashLoopBackOff|wake in 10s"},
		{"nor the next init container, once a later one was started", scene{Pod: withInit(withSidecar(pod(always, "a"), "s"), "i", "j"), Accepted: true, Here: world(exit("s", 1, 1, 0, "0s"), exit("i", 0, 0, 0, ""))}, "start container j#0|s waits: CrashLoopBackOff|wake in 10s"},
		{"the last one in back-off holds the regular ones", scene{Pod: withSidecar(withSidecar(pod(always, "a"), "s"), "last"), Accepted: true, Here: world(up("s", 0), exit("last", 1, 1, 0, "0s"), exit("a", 0, 1, 0, ""))}, "|last waits: CrashLoopBackOff|wake in 10s"},

		// What went wrong last.
		{"a container whose image is missing waits", scene{Pod: pod(always, "a"), Accepted: true, Here: world(), Failures: map[string]plan.Failure{"a": {Waiting: plan.Waiting{Reason: "ErrImagePull"}, Retry: noon.Add(10 * time.Second)}}}, "|a waits: ErrImagePull|wake in 10s"},
		{"a container whose image is on its way waits, others start", scene{Pod: pod(always, "a", "b"), Accepted: true, Here: world(), Fetching: map[string]plan.Pull{"a": {Image: "img:1", Since: noon}}}, "start container b#0|a waits: ContainerCreating|wake in 10s"},
		{"and is tried again when it is time", scene{Pod: pod(always, "a"), Accepted: true, Here: world(), Failures: map[string]plan.Failure{"a": {Retry: noon}}}, "start container a#0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := decided(t, row.scene.Facts()); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// A container's own policy and rules come before the pod's.
func TestMayRestart(t *testing.T) {
	policy := func(p v1.ContainerRestartPolicy) *v1.ContainerRestartPolicy { return &p }
	rule := func(op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) []v1.ContainerRestartRule {
		return []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestart, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}}
	}
	in, notIn := v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn
	for _, row := range []struct {
		name   string
		pod    v1.RestartPolicy
		own    *v1.ContainerRestartPolicy
		rules  []v1.ContainerRestartRule
		code   int32
		expect bool
	}{
		{"always in a Never pod", v1.RestartPolicyNever, policy("Always"), nil, 0, true},
		{"never in an Always pod", v1.RestartPolicyAlways, policy("Never"), nil, 1, false},
		{"on failure in a Never pod, failed", v1.RestartPolicyNever, policy("OnFailure"), nil, 1, true},
		{"on failure in a Never pod, done", v1.RestartPolicyNever, policy("OnFailure"), nil, 0, false},
		{"a rule that matches", v1.RestartPolicyNever, policy("Never"), rule(in, 42), 42, true},
		{"a rule that does not", v1.RestartPolicyNever, policy("Never"), rule(in, 42), 41, false},
		{"a rule that excludes", v1.RestartPolicyNever, policy("Never"), rule(notIn, 0, 1), 2, true},
		{"a rule that excludes this code", v1.RestartPolicyNever, policy("Never"), rule(notIn, 0, 1), 1, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := pod(row.pod, "a")
			p.Spec.Containers[0].RestartPolicy, p.Spec.Containers[0].RestartPolicyRules = row.own, row.rules
			n := exit("a", 0, row.code, 0, "")
			if got := plan.MayRestart(p, &p.Spec.Containers[0], &n); got != row.expect {
				t.Errorf("got %v", got)
			}
		})
	}
}

// What goes says why.
func TestRemovalsSayWhy(t *testing.T) {
	always := v1.RestartPolicyAlways
	noCheckpoint := func(s *plan.Facts) { delete(s.Known, "old") }
	for _, row := range []struct {
		name string
		scene
		want string
	}{
		{"no pod is wanted", scene{Nothing: true, Accepted: true, Here: world(up("a", 0))}, "its manifest is gone"},
		{"it makes room for pods that make room for it", scene{Nothing: true, Accepted: true, Here: world(up("a", 0)), Change: func(s *plan.Facts) { s.Exchanges = true }},
			"other pods wait for what it has, as its next version does for what they have"},
		{"it was not wanted for a while", scene{Accepted: true, Retired: true, Here: world(up("a", 0))}, "its manifest was gone for a while"},
		{"another version is wanted since it was not", scene{Accepted: true, Retired: true, Digest: "d0", Here: world(up("a", 0))}, "its manifest has changed"},
		{"another version is wanted", scene{Old: world(up("a", 0))}, "its manifest has changed"},
		{"another version is wanted, and it has no checkpoint", scene{Old: world(up("a", 0)), Change: noCheckpoint}, "its manifest has changed"},
	} {
		row.Pod = pod(always, "a")
		for _, a := range slices.Concat(plan.Make(row.scene.Facts()).Steps...) {
			if a.Reason != row.want {
				t.Errorf("%s: %s", row.name, a)
			}
		}
	}
}

func broken(c *pleg.Container) { c.Reason, c.Started, c.BrokenOff = "StartError", time.Time{}, true }
