package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// spec returns a pod's manifest from the lines of its spec.
func podOf(name string, lines ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  %s\n", name, strings.Join(lines, "\n  "))
}

// hook returns a container with a hook that runs a command.
func hookYAML(container, hook, command string) string {
	return fmt.Sprintf(`- {name: %s, image: "img:1", lifecycle: {%s: {exec: {command: [%s]}}}}`, container, hook, command)
}

const plainB = `- {name: b, image: "img:1"}`

// commands makes containers do what a command's first word says: hang until it
// is broken off, fail, or take so long. It counts them.
type commands struct{ started, running atomic.Int32 }

func (n *commands) on(r *rig) {
	r.OnExec(func(ctx context.Context, _ critest.Container, command []string) (string, int32, error) {
		n.started.Add(1)
		n.running.Add(1)
		defer n.running.Add(-1)
		d, err := time.ParseDuration(command[0])
		switch {
		case command[0] == "fail":
			return "it says no", 3, nil
		case command[0] == "hang":
			d = 1000 * time.Hour
		case err != nil:
			return "", 0, nil
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return "", 0, nil
		case <-ctx.Done():
			return "", 0, errors.New("broken off")
		}
	})
}

// containerStatus returns what is reported of one container.
func (r *rig) containerStatus(pod, name string) v1.ContainerStatus {
	r.Helper()
	st := r.status(pod)
	for _, c := range append(st.InitContainerStatuses, st.ContainerStatuses...) {
		if c.Name == name {
			return c
		}
	}
	r.Fatalf("no status of container %s", name)
	return v1.ContainerStatus{}
}

// waits checks that a container is reported as waiting, for that reason.
func (r *rig) waits(pod, name, reason string) {
	r.Helper()
	c := r.containerStatus(pod, name)
	if c.State.Waiting == nil || c.State.Waiting.Reason != reason || c.Ready || *c.Started {
		r.Errorf("container %s is %+v, want it to wait with %s", name, c, reason)
	}
}

func TestASlowPostStartHoldsBackWhatComesAfter(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		m := podOf("web", "containers:", `- {name: z, image: "img:1"}`, hookYAML("a", "postStart", "20s"), plainB)
		r.want(m)
		r.after(19 * time.Second)
		r.expect("default/web-n/z", "default/web-n/a")
		r.waits("default/web-n", "a", "ContainerCreating")
		r.waits("default/web-n", "b", "ContainerCreating")
		if st := r.status("default/web-n"); st.Phase != v1.PodPending {
			r.Errorf("phase %s", st.Phase)
		}
		r.after(2 * time.Second)
		r.expect("default/web-n/z", "default/web-n/a", "default/web-n/b")
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning || !st.ContainerStatuses[0].Ready || n.started.Load() != 1 {
			r.Errorf("%d hooks, status %+v", n.started.Load(), st)
		}
	})
}

func TestAContainerWhosePostStartFailsIsRestarted(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.Program("a", critest.Runs().OnTerm(5*time.Second, 0))
		r.want(podOf("web", "containers:", hookYAML("a", "postStart", "fail")))
		r.after(time.Second)
		r.waits("default/web-n", "a", "PostStartHookError")
		if text := r.containerStatus("default/web-n", "a").State.Waiting.Message; !strings.Contains(text, "exited with 3") || strings.Contains(text, "it says no") {
			r.Errorf("message %q, want the code and not the output", text)
		}
		if !strings.Contains(r.log.String(), "it says no") {
			r.Errorf("the log does not tell the output")
		}
		if st := r.status("default/web-n"); st.Phase != v1.PodPending {
			r.Errorf("phase %s before it first ran", st.Phase)
		}
		r.after(6 * time.Second) // the second attempt has failed by then too
		r.waits("default/web-n", "a", "PostStartHookError")
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning {
			r.Errorf("phase %s, want that of a pod that is restarting", st.Phase)
		}
		r.after(4 * time.Second)
		r.waits("default/web-n", "a", "CrashLoopBackOff")
		r.OnExec(nil)
		r.after(11 * time.Second)
		if c := r.containerStatus("default/web-n", "a"); !c.Ready || c.RestartCount != 2 {
			r.Errorf("container %+v", c)
		}
	})
}

func TestARemovedPodInterruptsItsPostStart(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.Program("a", critest.Runs().IgnoresTerm())
		r.want(podOf("web", "containers:", hookYAML("a", "postStart", "hang"), plainB))
		r.after(time.Hour)
		r.expect("default/web-n/a")
		r.want()
		r.after(time.Second)
		if n.running.Load() != 0 {
			r.Errorf("the hook still runs")
		}
		r.after(30 * time.Second)
		if left := len(r.Sandboxes()); left != 0 {
			r.Errorf("%d sandboxes are left", left)
		}
	})
}

func TestAHangingPostStartKeepsNoOtherContainerFromBeingRestarted(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "containers:", plainB, hookYAML("a", "postStart", "hang")))
		r.after(time.Minute)
		r.Exit("b", 1)
		r.settle()
		r.expect("default/web-n/a", "default/web-n/b")
		r.Exit("a", 1) // its hook ends with it
		r.settle()
		if c, _ := r.Container("a"); c.Attempt != 1 || n.started.Load() != 2 || n.running.Load() != 1 {
			r.Errorf("attempt %d, %d hooks started, %d run", c.Attempt, n.started.Load(), n.running.Load())
		}
	})
}

func TestAPostStartThatTheAgentsDeathInterruptsRunsAgain(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		m := podOf("web", "containers:", hookYAML("a", "postStart", "20s"), plainB)
		r.want(m)
		r.after(10 * time.Second)
		r.stop()
		r.start()
		r.want(m)
		r.after(15 * time.Second)
		r.expect("default/web-n/a")
		r.waits("default/web-n", "a", "ContainerCreating")
		r.after(6 * time.Second)
		r.expect("default/web-n/a", "default/web-n/b")
		r.stop()
		r.start()
		r.want(m)
		r.after(time.Minute)
		if c := r.containerStatus("default/web-n", "a"); n.started.Load() != 2 || !c.Ready || c.RestartCount != 0 {
			r.Errorf("%d hooks were started; container %+v", n.started.Load(), c)
		}
	})
}

func TestARuntimeThatGoesAwayIsNoFailureOfAPostStart(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "containers:", hookYAML("a", "postStart", "20s")))
		r.after(10 * time.Second)
		r.Stop()
		r.after(10 * time.Second)
		r.Resume()
		r.after(22 * time.Second)
		if c := r.containerStatus("default/web-n", "a"); !c.Ready || c.RestartCount != 0 {
			r.Errorf("container %+v", c)
		}
	})
}

func TestASidecarsPostStartHoldsBackTheNextInitContainer(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "initContainers:",
			`- {name: s, image: "img:1", restartPolicy: Always, lifecycle: {postStart: {exec: {command: [20s]}}}}`,
			`- {name: i, image: "img:1"}`, "containers:", plainB))
		r.after(19 * time.Second)
		r.expect("default/web-n/s")
		r.waits("default/web-n", "s", "PodInitializing")
		r.after(2 * time.Second)
		r.expect("default/web-n/s", "default/web-n/i")
	})
}

func TestASleepAsPostStart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(podOf("web", "containers:", `- {name: a, image: "img:1", lifecycle: {postStart: {sleep: {seconds: 7}}}}`))
		r.after(6 * time.Second)
		r.waits("default/web-n", "a", "ContainerCreating")
		if st := r.status("default/web-n"); st.Phase != v1.PodPending {
			r.Errorf("phase %s", st.Phase)
		}
		r.after(2 * time.Second)
		if c := r.containerStatus("default/web-n", "a"); !c.Ready {
			r.Errorf("container %+v", c)
		}
	})
}

// Under OnFailure a container that answers SIGTERM with success would else be done.
func TestAFailedPostStartIsNoSuccess(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("job", "restartPolicy: OnFailure", "containers:", hookYAML("a", "postStart", "fail")))
		r.after(5 * time.Second)
		r.waits("default/job-n", "a", "CrashLoopBackOff")
		if t := r.containerStatus("default/job-n", "a").LastTerminationState.Terminated; t == nil || !strings.Contains(t.Message, "PostStart hook failed: exec: the command exited with 3") {
			r.Errorf("it ended with %+v", t)
		}
		r.OnExec(nil)
		r.after(10 * time.Second)
		r.expect("default/job-n/a")
	})
}

// The containers of a pod whose sandbox is dead stop, and its address may be another one's by then.
func TestAHookOfAPodWithoutAddressDoesNotGoToTheMachine(t *testing.T) {
	live(t, func(r *rig) {
		r.want(podOf("web", "containers:", `- {name: a, image: "img:1", lifecycle: {preStop: {httpGet: {port: 1}}}}`))
		r.expect("default/web-n/a")
		r.KillSandbox("web-n")
		r.after(time.Minute)
		if c, _ := r.Container("a"); c.Attempt != 1 {
			r.Errorf("attempt %d runs", c.Attempt)
		}
		if text := r.log.String(); !strings.Contains(text, "the pod's address is not known") {
			r.Error("its hook did not fail for want of an address")
		}
	})
}
