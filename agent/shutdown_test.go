package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// goesDown runs a test with 20 s for pods and 5 s of it for critical ones.
func goesDown(t *testing.T, test func(*rig)) {
	liveWith(t, func(r *rig) {
		r.configure = func(c *config.Config) { c.ShutdownGrace, c.ShutdownGraceCritical = 20*time.Second, 5*time.Second }
	}, test)
}

// down is what logind tells.
func (r *rig) down(now bool) {
	r.sync.down.Orders <- now
	r.settle()
}

const hook = "lifecycle: {preStop: {exec: {command: [pre]}}}, image:"

func critical(doc string) string {
	return strings.Replace(doc, "spec:\n", "spec:\n  priority: 2000001000\n", 1)
}

func never(name string) string { return manifest(name, "img:1", "restartPolicy: Never") }

// stopsOf runs do and returns the stops of containers meanwhile, in order, as in
// "web after 4s with 10s".
func (r *rig) stopsOf(do func()) string {
	pods, began, out := map[string]string{}, time.Now(), []string{}
	for _, c := range r.Containers() {
		pods[c.ID] = strings.TrimSuffix(c.Pod, "-n")
	}
	r.ForgetCalls()
	do()
	for _, call := range r.Calls() {
		if stop, ok := call.Request.(*rt.StopContainerRequest); ok {
			out = append(out, fmt.Sprintf("%s after %s with %ds", pods[stop.ContainerId], call.At.Sub(began), stop.Timeout))
		}
	}
	return strings.Join(out, ", ")
}

// isDone reports whether the lock of the machine may be released.
func (r *rig) isDone() bool { return len(r.sync.down.Done) == 1 }

func TestPodsStopInOrderBeforeTheMachineGoesDown(t *testing.T) {
	goesDown(t, func(r *rig) {
		all := []string{critical(manifest("proxy", "img:1")), manifest("db", "img:1"), after("web", "db", "img:1")}
		r.want(all...)
		r.after(time.Minute)
		r.Program("web", critest.Runs().OnTerm(4*time.Second, 0))
		for _, c := range []string{"web-n/c", "db-n/c", "proxy-n/c"} {
			r.Program(c, critest.Runs().OnTerm(2*time.Second, 0))
			r.Exit(c, 1) // and runs that from now on
		}
		r.after(time.Minute)
		stops := r.stopsOf(func() {
			r.down(true)
			r.after(time.Second)
			r.expect("default/web-n/c", "default/db-n/c", "default/proxy-n/c")
			r.after(10 * time.Second)
		})
		if want := "web after 0s with 8s, db after 2s with 13s, proxy after 4s with 16s"; stops != want {
			r.Errorf("stops: %s, want %s", stops, want)
		}
		r.expect()
		if !r.isDone() {
			r.Error("the machine still waits")
		}
		for _, name := range []string{"web", "db", "proxy"} {
			st := r.status("default/" + name + "-n")
			if st.Phase != v1.PodFailed || st.Reason != "Terminated" || st.Message != "Pod was terminated in response to imminent node shutdown." {
				r.Errorf("%s: %s %s %q", name, st.Phase, st.Reason, st.Message)
			}
			if c := st.Conditions[len(st.Conditions)-1]; c.Type != v1.DisruptionTarget || c.Status != v1.ConditionTrue || c.Reason != "TerminationByKubelet" {
				r.Errorf("%s: %+v", name, c)
			}
			if s := st.ContainerStatuses[0].State.Terminated; s == nil {
				r.Errorf("%s: its container is %+v", name, st.ContainerStatuses[0].State)
			}
		}
		r.tells("n", "Normal Shutdown: Shutdown manager detected shutdown event")
		r.kill()
		r.reboot()
		r.start()
		r.want(all...)
		r.after(time.Minute)
		r.expect("default/db-n/c", "default/proxy-n/c", "default/web-n/c")
		for _, c := range r.status("default/web-n").Conditions {
			if c.Type == v1.DisruptionTarget {
				r.Error("it is still a target of disruption")
			}
		}
	})
}

func TestHooksRunBeforeTheMachineGoesDown(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.OnExec(func(ctx context.Context, _ critest.Container, _ []string) (string, int32, error) {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
			return "", 0, nil
		})
		r.want(strings.Replace(manifest("web", "img:1"), "image:", hook, 1))
		r.after(time.Minute)
		if stops := r.stopsOf(func() { r.down(true); r.after(time.Minute) }); stops != "web after 3s with 12s" {
			r.Error(stops)
		}
		if n := r.Count("ExecSync"); n != 1 {
			r.Errorf("%d hooks ran", n)
		}
	})
}

func TestAPodThatDoesNotStopDelaysTheMachineNoLonger(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1", "terminationGracePeriodSeconds: 3600"), manifest("short", "img:1", "terminationGracePeriodSeconds: 3"))
		r.after(time.Minute)
		hangs := r.Fault(critest.On("StopContainer").Of("web-n").Hang())
		stops := r.stopsOf(func() {
			r.down(true)
			r.after(14 * time.Second)
			if r.isDone() {
				r.Error("the machine does not wait for the pod")
			}
			r.after(2 * time.Second)
			if !r.isDone() {
				r.Error("the machine waits for longer")
			}
		})
		if all := strings.Split(stops, ", "); len(all) != 2 || !slices.Contains(all, "web after 0s with 15s") || !slices.Contains(all, "short after 0s with 3s") {
			r.Error(stops)
		}
		hangs.Release()
	})
}

// What was stopped in the middle of its work runs again, what had ended does not.
func TestAJobThatAShutdownInterruptsRunsAgain(t *testing.T) {
	for _, policy := range []string{"Never", "OnFailure"} {
		for k := range 4 {
			killed, boot := k%2 == 0, (*rig).reboot
			if k >= 2 {
				boot = (*rig).forgetful
			}
			t.Run(fmt.Sprintf("%s, killed: %t, the runtime forgets: %t", policy, killed, k >= 2), func(t *testing.T) {
				goesDown(t, func(r *rig) {
					r.Program("done-n/c", critest.ExitsAfter(time.Second, 0))
					r.Program("lost-n/c", critest.ExitsAfter(time.Second, 1))
					r.Program("job-n/c", critest.Runs().OnTerm(4*time.Second, 0))
					all := []string{manifest("job", "img:1", "restartPolicy: "+policy), never("done"), never("lost")}
					r.want(all...)
					r.after(time.Minute)
					r.down(true)
					if r.after(2 * time.Second); !killed { // in the middle of it
						r.after(time.Minute)
					}
					for name, want := range map[string]v1.PodPhase{"done": v1.PodSucceeded, "lost": v1.PodFailed} {
						if st := r.status("default/" + name + "-n"); st.Phase != want || st.Reason == "Terminated" {
							r.Errorf("%s: %s %s", name, st.Phase, st.Reason)
						}
					}
					r.kill()
					boot(r)
					r.start()
					r.want(all...)
					r.after(time.Minute)
					r.expect("default/job-n/c")
				})
			})
		}
	}
}

func TestNothingNewStartsWhileTheMachineGoesDown(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"), manifest("same", "img:1"))
		r.after(time.Minute)
		r.down(true)
		r.want(manifest("web", "img:2"), manifest("same", "img:1", "terminationGracePeriodSeconds: 7"), manifest("new", "img:1"))
		r.after(10 * time.Minute)
		r.expect()
		if st := r.status("default/new-n"); st.Phase != v1.PodFailed || st.Reason != "NodeShutdown" || !strings.HasSuffix(st.Message, "Pod was rejected as the node is shutting down.") {
			r.Errorf("%s %s %q", st.Phase, st.Reason, st.Message)
		}
		r.tells("new-n", "Warning NodeShutdown: Pod was rejected as the node is shutting down.")
		if st := r.status("default/web-n"); st.Reason != "Terminated" {
			r.Errorf("%s %s %q", st.Phase, st.Reason, st.Message)
		}
		r.kill()
		r.reboot()
		r.start()
		r.want(manifest("web", "img:2"), manifest("same", "img:1"), manifest("new", "img:1"))
		r.after(time.Minute)
		r.expect("default/new-n/c", "default/same-n/c", "default/web-n/c")
	})
}

func TestACancelledShutdownStartsThePodsAgain(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("in the middle: %t", early), func(t *testing.T) {
			goesDown(t, func(r *rig) {
				all := []string{manifest("db", "img:1"), after("web", "db", "img:1"), critical(manifest("proxy", "img:1")), never("job")}
				r.Program("web-n/c", critest.Runs().OnTerm(4*time.Second, 0))
				r.want(all...)
				r.after(time.Minute)
				r.stops("proxy")
				r.after(time.Minute)
				r.down(true)
				if r.after(2 * time.Second); !early {
					r.after(time.Minute)
				}
				all = append(all, manifest("new", "img:1"))
				r.want(all...)
				r.down(false)
				r.after(time.Minute)
				r.expect("default/db-n/c", "default/job-n/c", "default/new-n/c", "default/web-n/c")
				r.isStopped("proxy")
				r.tells("n", "Normal Shutdown: Shutdown manager detected shutdown event", "Normal Shutdown: Shutdown manager detected shutdown cancellation")
				r.down(true)
				r.after(time.Minute)
				r.expect()
				if !r.isDone() {
					r.Error("the machine still waits")
				}
			})
		})
	}
}

func TestPodsStayStoppedAfterSIGPWR(t *testing.T) {
	live(t, func(r *rig) { // with no setting of it
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"), critical(manifest("proxy", "img:1")))
		r.after(time.Minute)
		stops := r.stopsOf(func() {
			for range 2 {
				r.power <- syscall.SIGPWR
				r.after(time.Minute)
			}
		})
		if want := "web after 0s with 10s, db after 0s with 20s, proxy after 0s with 30s"; stops != want {
			r.Errorf("stops: %s, want %s", stops, want)
		}
		<-r.sync.down.Done // while logind does not wait yet
		r.down(true)
		if r.down(false); !r.isDone() {
			r.Error("the machine, which goes down now, still waits")
		}
		r.after(time.Minute)
		r.expect()
		if n := strings.Count(strings.Join(r.happened("n"), "\n"), "Shutdown"); n != 2 { // reason and message
			r.Errorf("%d times it is told: %s", n, r.happened("n"))
		}
		r.ForgetCalls()
		r.kill()
		r.start()
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"), critical(manifest("proxy", "img:1")))
		r.after(time.Minute)
		r.expect("default/db-n/c", "default/proxy-n/c", "default/web-n/c")
		if names := r.startOrder(); slices.Index(names, "db-n") > slices.Index(names, "web-n") {
			r.Errorf("they started as %s", names)
		}
	})
}

// startOrder returns the pods whose sandboxes were made, in order.
func (r *rig) startOrder() (names []string) {
	for _, call := range r.Calls() {
		if run, ok := call.Request.(*rt.RunPodSandboxRequest); ok {
			names = append(names, run.Config.Metadata.Name)
		}
	}
	return names
}

func TestPodsOfAPreviousAgentStopToo(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.kill()
		r.start()
		r.down(true) // before the manifests were read
		r.after(time.Minute)
		r.expect()
		if st := r.status("default/web-n"); st.Reason != "Terminated" || !r.isDone() {
			r.Errorf("%s %s, done: %t", st.Phase, st.Reason, r.isDone())
		}
	})
}

// An upgrade, say, restarts the agent while the machine waits for others.
func TestAnAgentThatStartsInAShutdownStartsNothing(t *testing.T) {
	goesDown(t, func(r *rig) {
		all := []string{manifest("web", "img:1"), never("job")}
		r.want(all...)
		r.after(time.Minute)
		r.down(true)
		r.after(time.Minute)
		r.kill()
		r.goingDown = true
		r.ForgetCalls()
		r.start()
		r.want(append(all, manifest("new", "img:1"))...)
		r.after(time.Minute)
		r.expect()
		if n := r.Count("RunPodSandbox"); n > 0 || !r.isDone() {
			r.Errorf("%d sandboxes were made; done: %t", n, r.isDone())
		}
		r.down(true) // as the inhibitor tells, too
		r.down(false)
		r.after(time.Minute)
		r.expect("default/job-n/c", "default/new-n/c", "default/web-n/c")
	})
}

func TestARemovalGoesOnWhileTheMachineGoesDown(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.Program("old-n/c", critest.Runs().OnTerm(4*time.Second, 0))
		r.want(manifest("old", "img:1"), manifest("web", "img:1"))
		r.after(time.Minute)
		r.want(manifest("web", "img:1"))
		r.down(true)
		r.after(time.Second)
		if r.isDone() {
			r.Error("the machine does not wait for what is removed")
		}
		r.after(time.Minute)
		r.expect()
		if _, ok := r.store.Pod("default/old-n"); ok || !r.isDone() {
			r.Errorf("it is reported: %t, done: %t", ok, r.isDone())
		}
	})
}

func TestAJobThatHasJustEndedDoesNotRunAgain(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.want(never("job"))
		r.after(time.Minute)
		r.DropEvents(99) // the agent does not know yet
		r.Exit("job-n/c", 0)
		r.down(true)
		r.after(time.Minute)
		if st := r.status("default/job-n"); st.Phase != v1.PodSucceeded || st.Reason == "Terminated" {
			r.Errorf("%s %s", st.Phase, st.Reason)
		}
		r.kill()
		r.reboot()
		r.start()
		r.want(never("job"))
		r.after(time.Minute)
		r.expect()
	})
}
