//go:build e2e

package e2e

import (
	"fmt"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
	"monopod/agent/pleg"
)

// crash kills a container's first process.
func (w *world) crash(c rig.Container) {
	w.Helper()
	pid, err := w.rig.CRI.Pid(w.Context(), c.ID)
	check(w.T, err)
	check(w.T, syscall.Kill(pid, syscall.SIGKILL))
}

// successor waits until a container with that attempt runs.
func (w *world) successor(pod string, attempt uint32) rig.Container {
	w.Helper()
	var next rig.Container
	w.until(fmt.Sprintf("%s runs for the %d. time", pod, attempt+1), func() error {
		for _, c := range w.containers(pod) {
			if c.State == "Running" && c.Attempt == attempt {
				next = c
				return nil
			}
		}
		return fmt.Errorf("containers are %+v", w.containers(pod))
	})
	return next
}

func restartsACrashedContainer(w *world) {
	w.start()
	w.write("crash", sleeper)
	first := w.running("crash")["crash"]
	w.crash(first)
	second := w.successor("crash", 1)
	if second.Sandbox != first.Sandbox {
		w.Errorf("the successor runs in sandbox %s, want %s", second.Sandbox, first.Sandbox)
	}
	w.status("crash", "tells of the crash", func(s v1.PodStatus) bool {
		if len(s.ContainerStatuses) != 1 {
			return false
		}
		c := s.ContainerStatuses[0]
		return c.RestartCount == 1 && c.State.Running != nil &&
			c.LastTerminationState.Terminated != nil && c.LastTerminationState.Terminated.ExitCode == 137
	})

	w.crash(second)
	w.status("crash", "waits after a second crash", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil &&
			s.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	w.ps("crash", "CrashLoopBackOff")
}

// restartsWhatLostItsProcess kills conmon before the program: CRI-O lists the container as running
// from then on.
func restartsWhatLostItsProcess(w *world) {
	w.start()
	w.write("lost", sleeper)
	w.write("well", sleeper)
	all := w.running("lost", "well")
	monitors := w.rig.Runtime.Monitors(all["lost"].ID)
	if len(monitors) == 0 {
		return // other runtimes see the end themselves
	}
	time.Sleep(pleg.HealthEvery + time.Second) // the agent has seen the process once
	for _, pid := range monitors {
		check(w.T, syscall.Kill(pid, syscall.SIGKILL))
	}
	w.crash(all["lost"])
	w.successor("lost", 1)
	w.status("lost", "was restarted once", func(s v1.PodStatus) bool {
		c := s.ContainerStatuses[0]
		return c.RestartCount == 1 && c.State.Running != nil && c.LastTerminationState.Terminated != nil
	})
	w.same(map[string]rig.Container{"well": all["well"]})
}

func followsRestartPolicies(w *world) {
	w.start()
	type want struct {
		phase     v1.PodPhase // of one that ended
		restarted bool
	}
	rows := map[string]want{
		"never-0":     {phase: v1.PodSucceeded},
		"never-1":     {phase: v1.PodFailed},
		"onfailure-0": {phase: v1.PodSucceeded},
		"onfailure-1": {restarted: true},
		"always-0":    {restarted: true},
		"always-1":    {restarted: true},
	}
	policies := map[string]string{"never": "Never", "onfailure": "OnFailure", "always": "Always"}
	for pod := range rows {
		policy, code := pod[:len(pod)-2], pod[len(pod)-1:]
		w.write(pod, fmt.Sprintf(`
  hostNetwork: true
  restartPolicy: %s
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh, -c, exit %s]}
`, policies[policy], code))
	}
	ended := map[string]rig.Container{}
	for pod, want := range rows {
		if want.restarted {
			w.status(pod, "was restarted", func(s v1.PodStatus) bool {
				return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].RestartCount > 0
			})
			continue
		}
		w.phase(pod, want.phase)
		ended[pod] = w.containers(pod)[0]
	}

	check(w.T, w.agent.Stop())
	w.start()
	w.barrier("after")
	w.same(ended)
	for pod := range ended {
		w.phase(pod, rows[pod].phase)
	}
}
