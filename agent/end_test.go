package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// endedBy checks that the pod has failed at its deadline.
func (r *rig) endedBy(pod, reason string) {
	r.Helper()
	st := r.status(pod)
	if st.Phase != v1.PodFailed || st.Reason != reason || st.Message == "" {
		r.Errorf("phase %s, reason %q, message %q", st.Phase, st.Reason, st.Message)
	}
	for _, c := range st.Conditions {
		if c.Type == v1.PodReady && (c.Status != v1.ConditionFalse || c.Reason != "PodFailed") {
			r.Errorf("condition %+v", c)
		}
	}
}

func TestADeadlineGoesOnAcrossAnAgentsRestart(t *testing.T) {
	live(t, func(r *rig) {
		m := manifest("web", "img:1", "activeDeadlineSeconds: 100")
		r.want(m)
		r.after(40 * time.Second)
		r.stop()
		r.after(20 * time.Second)
		r.start()
		r.want(m)
		r.after(38 * time.Second)
		r.expect("default/web-n/c")
		r.after(3 * time.Second)
		r.expect()
		r.endedBy("default/web-n", "DeadlineExceeded")
		made := r.made()
		r.stop()
		r.start()
		r.want(m)
		r.after(time.Hour)
		r.endedBy("default/web-n", "DeadlineExceeded")
		if r.made() != made {
			r.Errorf("it was made again")
		}
	})
}

// A container that answers with success, slowly, does not make the pod's end
// one, whoever sees it.
func TestADeadlineThatAnAgentDoesNotLiveToSee(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().OnTerm(8*time.Second, 0))
		m := manifest("job", "img:1", "restartPolicy: Never", "activeDeadlineSeconds: 100")
		r.want(m)
		r.after(102 * time.Second)
		if st := r.status("default/job-n"); st.Phase != v1.PodRunning || st.Reason != "DeadlineExceeded" {
			r.Errorf("while it stops: phase %s, reason %q", st.Phase, st.Reason)
		}
		r.stop()
		r.after(time.Minute)
		r.expect()
		r.start()
		r.want(m)
		r.endedBy("default/job-n", "DeadlineExceeded")
	})
}

func TestADeadlineIsNotForWorkThatIsDone(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.ExitsAfter(50*time.Second, 0))
		m := manifest("job", "img:1", "restartPolicy: Never", "activeDeadlineSeconds: 100")
		r.want(m)
		r.after(time.Second)
		r.stop()
		r.after(time.Hour)
		r.start()
		r.want(m)
		if st := r.status("default/job-n"); st.Phase != v1.PodSucceeded {
			r.Errorf("phase %s, reason %s", st.Phase, st.Reason)
		}
	})
}

func TestADeadlineInterruptsAPull(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", time.Hour, nil)
		r.want(manifest("web", "img:9", "activeDeadlineSeconds: 100"))
		r.after(101 * time.Second)
		r.endedBy("default/web-n", "DeadlineExceeded")
	})
}

func TestASidecarEndsWithItsJob(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("b", critest.ExitsAfter(10*time.Second, 0))
		r.Program("s", critest.Runs().OnTerm(3*time.Second, 143))
		r.want(podOf("job", "restartPolicy: Never", "initContainers:",
			`- {name: s, image: "img:1", restartPolicy: Always}`, "containers:", plainB))
		r.after(11 * time.Second)
		r.expect("default/job-n/s")
		if st := r.status("default/job-n"); st.Phase != v1.PodRunning {
			r.Errorf("phase %s while the sidecar runs", st.Phase)
		}
		r.after(3 * time.Second)
		r.expect()
		if st := r.status("default/job-n"); st.Phase != v1.PodSucceeded {
			r.Errorf("phase %s", st.Phase)
		}
	})
}

// resetting is a pod of which one container's exit with 42 restarts all.
var resettingPod = podOf("web", "restartPolicy: Never", "initContainers:", `- {name: i, image: "img:1"}`, "containers:", plainB,
	`- {name: a, image: "img:1", restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}`)

func attemptsOf(r *rig) string {
	var out []string
	for _, c := range r.Containers() {
		out = append(out, fmt.Sprintf("%s#%d", c.Name, c.Attempt))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestARuleRestartsAllContainers(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("i", critest.ExitsAfter(time.Second, 0))
		r.Program("b", critest.Runs().IgnoresTerm())
		r.want(resettingPod)
		r.after(2 * time.Second)
		r.Exit("a", 42)
		r.after(time.Second)
		st := r.status("default/web-n")
		if c := st.Conditions[len(st.Conditions)-1]; c.Type != v1.AllContainersRestarting || c.Status != v1.ConditionTrue || st.Phase != v1.PodRunning {
			r.Errorf("phase %s, condition %+v", st.Phase, c)
		}
		r.waits("default/web-n", "a", "RestartingAllContainers")
		r.after(3 * time.Second)
		r.expect("default/web-n/a", "default/web-n/b")
		if got := attemptsOf(r); got != "a#1 b#1 i#1" || r.Count("RunPodSandbox") != 1 {
			r.Errorf("containers %s in the %d. sandbox", got, r.Count("RunPodSandbox"))
		}
		st = r.status("default/web-n")
		if c := st.Conditions[len(st.Conditions)-1]; c.Status != v1.ConditionFalse || st.ContainerStatuses[0].RestartCount != 1 {
			r.Errorf("condition %+v, container %+v", c, st.ContainerStatuses[0])
		}
		r.Exit("a", 42) // again, so soon: with back-off
		r.after(9 * time.Second)
		r.waits("default/web-n", "a", "CrashLoopBackOff")
		r.expect("default/web-n/b")
		r.after(5 * time.Second)
		if got := attemptsOf(r); got != "a#2 b#2 i#2" {
			r.Errorf("containers %s", got)
		}
	})
}

func TestARestartOfAllContainersOutlivesTheAgent(t *testing.T) {
	for _, method := range []string{"StopContainer", "RemoveContainer"} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
				live(t, func(r *rig) {
					r.want(resettingPod)
					r.Exit("i", 0)
					r.settle()
					died := make(chan struct{})
					r.Fault(critest.On(method).Nth(nth).Before(func() { close(died) }).Fail(codes.Canceled, "client went away"))
					r.Exit("a", 42)
					r.settle()
					select {
					case <-died:
					default:
						if method == "StopContainer" && nth > 1 {
							return // there is one only
						}
						r.Fatal("the fault did not strike")
					}
					r.stop()
					r.start()
					r.want(resettingPod)
					r.after(2 * time.Second)
					if got := attemptsOf(r); got != "i#1" {
						r.Errorf("containers %s", got)
					}
					r.Exit("i", 0)
					r.settle()
					r.expect("default/web-n/a", "default/web-n/b")
				})
			})
		}
	}
}

func TestAJobIsRunAgainUntilItsLimit(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("web-n/c", critest.ExitsAfter(time.Second, 3))
		r.want("apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec:\n  backoffLimit: 2\n  template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"img:1\"}]}}\n")
		r.after(30 * time.Second)
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning || st.ContainerStatuses[0].RestartCount != 1 || st.ContainerStatuses[0].State.Waiting.Reason != "CrashLoopBackOff" {
			r.Errorf("%+v", st)
		}
		r.after(5 * time.Minute)
		st := r.status("default/web-n")
		if st.Phase != v1.PodFailed || st.Reason != "BackoffLimitExceeded" || st.Message != "Job has reached the specified backoff limit" || st.ContainerStatuses[0].RestartCount != 2 {
			r.Errorf("%+v", st)
		}
		if n := r.Count("StartContainer"); n != 3 {
			r.Errorf("started %d times", n)
		}
		r.stop()
		r.start()
		r.after(time.Minute)
		if n := r.Count("StartContainer"); n != 3 {
			r.Errorf("another agent started it: %d times", n)
		}
	})
}
