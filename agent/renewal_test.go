package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/status"
	"monopod/cri/critest"
)

// restart asks for a restart and lets it take effect, without time passing.
func (r *rig) restart(pod, container string) (*status.Restart, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done, err := r.sync.Restart(ctx, "default", pod, container)
	r.settle()
	return done, err
}

func (r *rig) mustRestart(pod, container string) *status.Restart {
	r.Helper()
	done, err := r.restart(pod, container)
	if err != nil {
		r.Fatal(err)
	}
	return done
}

func TestAContainerIsRestarted(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		before := r.status("default/web-n")
		done := r.mustRestart("web-n", "c")
		if want := done.Replaces["c"]; !strings.HasSuffix(before.ContainerStatuses[0].ContainerID, want) || want == "" {
			t.Errorf("replaces %v, not %s", done.Replaces, before.ContainerStatuses[0].ContainerID)
		}
		r.after(time.Second)
		r.expect("default/web-n/c")
		r.tells("web-n", "Normal Killing"+main+"Stopping container c: a restart was asked for", "Normal Started x2"+main)
		after := r.status("default/web-n").ContainerStatuses[0]
		if after.RestartCount != 1 || after.LastTerminationState.Terminated.Message != checkpoint.RestartRequested || r.Count("RunPodSandbox") != 1 {
			t.Errorf("after the restart: %+v", after)
		}
	})
}

func TestARestartEndsTheWaitAfterCrashes(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:1", critest.ExitsAfter(time.Second, 1))
		r.want(manifest("web", "img:1"))
		r.after(40 * time.Second)
		s := r.status("default/web-n").ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" {
			t.Fatalf("state %+v", s.State)
		}
		r.mustRestart("web-n", "c")
		r.expect("default/web-n/c")
		r.after(1500 * time.Millisecond) // it crashes, and starts at once as after a first crash
		r.expect("default/web-n/c")
	})
}

func TestAReplacedPodStartsInItsNewSandbox(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		r.mustRestart("web-n", "")
		r.after(3 * time.Second)
		r.expect("default/web-n/c")
		if n := r.Count("CreateContainer"); n != 2 {
			t.Errorf("%d calls of CreateContainer for two containers: the sandbox that went was tried, too", n)
		}
	})
}

func TestAPodIsReplacedUnderItsUID(t *testing.T) {
	for _, policy := range []string{"Always", "Never"} {
		t.Run(policy, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1", "restartPolicy: "+policy, "initContainers: [{name: i, image: \"img:2\"}]"))
				r.Exit("default/web-n/i", 0)
				r.settle()
				r.expect("default/web-n/c")
				before, _ := r.store.Pod("default/web-n")
				r.mustRestart("web-n", "")
				r.after(3 * time.Second)
				r.expect("default/web-n/i")
				r.Exit("default/web-n/i", 0)
				r.after(time.Second)
				r.expect("default/web-n/c")
				r.tells("web-n", "Normal Killing"+main+"Stopping container c: a restart was asked for")
				after, _ := r.store.Pod("default/web-n")
				if after.UID != before.UID || after.Status.Phase != v1.PodRunning || after.Status.ContainerStatuses[0].RestartCount != 1 || r.Count("RunPodSandbox") != 2 {
					t.Errorf("uid %s, then %s with %+v", before.UID, after.UID, after.Status)
				}
			})
		})
	}
}

// Wherever the agent is killed after it said that it restarts a pod or a
// container, the next one goes on with that, once.
func TestAKilledAgentsRestartGoesOn(t *testing.T) {
	for _, container := range []string{"", "c"} {
		for _, call := range []string{"StopContainer", "StopPodSandbox", "RunPodSandbox", "CreateContainer", "StartContainer"} {
			if container != "" && strings.Contains(call, "Sandbox") {
				continue
			}
			for _, killed := range []func(*critest.Fault, func()) *critest.Fault{(*critest.Fault).Before, (*critest.Fault).After} {
				t.Run(container+call, func(t *testing.T) {
					live(t, func(r *rig) { r.killedAt(container, killed(critest.On(call).Nth(1), r.life.cutOff)) })
				})
			}
		}
	}
}

func (r *rig) killedAt(container string, f *critest.Fault) {
	doc := manifest("web", "img:1", "restartPolicy: Never")
	r.want(doc)
	before, _ := r.store.Pod("default/web-n")
	r.ForgetCalls()
	r.Fault(f)
	r.mustRestart("web-n", container)
	r.after(time.Second)
	if !r.life.over.Load() {
		r.Fatal("the agent was not killed")
	}
	r.bury()
	r.start()
	r.want(doc)
	r.after(time.Minute)
	r.expect("default/web-n/c")
	after, _ := r.store.Pod("default/web-n")
	sandboxes := 1
	if container != "" {
		sandboxes = 0
	}
	if made := len(r.Sandboxes()) - 1; after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount < 1 || made > sandboxes {
		r.Errorf("uid %s, then %s with %+v; %d more sandboxes", before.UID, after.UID, after.Status, made)
	}
	if c := after.Status.ContainerStatuses[0]; strings.HasSuffix(before.Status.ContainerStatuses[0].ContainerID, c.ContainerID) {
		r.Error("it was not restarted")
	}
}

func TestRestartsThatAreRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "restartPolicy: Never"))
		for _, row := range []struct{ pod, container, want string }{
			{"nothing", "", "unknown: there is no pod default/nothing"},
			{"web-n", "x", `unknown: pod default/web-n has no container "x"`},
		} {
			_, err := r.restart(row.pod, row.container)
			e := &status.Refusal{}
			if !errors.As(err, &e) || "unknown: "+e.Why != row.want || !e.Unknown {
				t.Errorf("%s/%s: %v", row.pod, row.container, err)
			}
		}
		r.Exit("default/web-n/c", 0)
		r.after(time.Second)
		if _, err := r.restart("web-n", ""); err == nil || err.Error() != "pod default/web-n has ended (Succeeded) and does not run again until its manifest changes" {
			t.Errorf("err %v", err)
		}
		r.expect()
	})
}

func TestARestartThatNobodyWaitsForAnyMoreDoesNotHappen(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.Stop() // the runtime
		r.after(time.Second)
		if _, err := r.restart("web-n", "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err %v", err)
		}
		r.Resume()
		made := r.made()
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if r.made() != made {
			t.Error("it was restarted")
		}
	})
}
