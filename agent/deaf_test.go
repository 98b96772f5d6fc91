package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/status"
	"monopod/cri/critest"
)

const fromApp = "envFrom: [{configMapRef: {name: app}}]"

// Whatever interrupts a worker's wait after a pass that failed, it hears of what comes later.
func TestAWorkerThatWasInterruptedAfterAFailureHearsOfWhatComes(t *testing.T) {
	requests := map[string]func(r *rig){
		"nothing":             func(*rig) {},
		"a ConfigMap changes": func(r *rig) { r.want(refers("web", fromApp), object("ConfigMap", "app", "a: two")) },
		"a restart is asked":  func(r *rig) { go r.sync.Restart(r.Context(), "default", "web-n", "c"); r.settle() },
		"the manifest changes": func(r *rig) {
			r.want(refers("web", fromApp, "terminationGracePeriodSeconds: 3"), object("ConfigMap", "app", "a: one"))
		},
	}
	troubles := map[string]*critest.Fault{
		"one call fails":      critest.On("ContainerStatus").Times(1).Fail(codes.Unknown, "device or resource busy"),
		"the runtime is away": critest.On("ListPodSandbox").Fail(codes.Unavailable, "connection refused"),
	}
	for trouble, fault := range troubles {
		for request, ask := range requests {
			t.Run(trouble+", "+request, func(t *testing.T) {
				live(t, func(r *rig) {
					r.want(refers("web", fromApp), object("ConfigMap", "app", "a: one"))
					r.after(time.Minute)
					r.Fault(fault)
					r.Exit("c", 1)
					r.settle()
					ask(r)
					r.after(10 * time.Millisecond)
					r.ClearFaults()
					r.after(time.Minute)
					r.expect("default/web-n/c")
					r.Exit("c", 1) // with everything well
					r.after(10 * time.Minute)
					r.expect("default/web-n/c")
				})
			})
		}
	}
}

// What somebody else removes ends the trouble that the agent had with its removal.
func TestTheTroubleOfWhatIsGoneIsOver(t *testing.T) {
	for name, remove := range map[string]func(r *rig){
		"containers": func(r *rig) {
			for _, c := range r.Containers() {
				if c.State == rt.ContainerState_CONTAINER_EXITED {
					r.RemoveContainerBehindBack(c.ID)
				}
			}
		},
		"containers together with their sandbox": func(r *rig) {
			r.RemoveSandboxBehindBack(r.Sandboxes()[0].ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				r.Fault(critest.On("RemoveContainer").Fail(codes.Unknown, "device or resource busy"))
				for range 3 {
					r.after(10 * time.Minute)
					r.Exit("c", 1)
				}
				r.after(20 * time.Minute)
				if said := status.ProblemsOf(r.pod("default/web-n")); !strings.Contains(strings.Join(said, ";"), "device or resource busy") {
					t.Fatalf("of the trouble is said: %q", said)
				}
				remove(r)
				r.after(20 * time.Minute)
				r.problems()
				r.expect("default/web-n/c")
			})
		})
	}
}

// A replaced sandbox and what was in it are not removed at the same time: runtimes fail the
// removal that comes second.
func TestASandboxAndWhatIsInItAreNotRemovedAtTheSameTime(t *testing.T) {
	live(t, func(r *rig) {
		r.Takes("RemoveContainer", time.Second)
		r.Takes("RemovePodSandbox", time.Second)
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		for range 10 {
			r.KillSandbox("web-n")
			r.after(2 * time.Minute)
			r.Exit("c", 1)
			r.after(7 * time.Minute)
		}
		if n := strings.Count(r.log.String(), "removal failed"); n > 0 {
			t.Errorf("%d removals failed:\n%s", n, r.log)
		}
	})
}

// Calls that hang cost other pods their patience once: starts, stops and removals have
// slots of their own.
func TestCallsThatHangHoldUpNoOtherPod(t *testing.T) {
	for _, row := range []struct {
		call string
		n    int
		goes bool // the pods go; else they start
	}{{"StopPodSandbox", 6, true}, {"RemovePodSandbox", 6, true}, {"CreateContainer", 20, false}, {"RunPodSandbox", 20, false}, {"StartContainer", 20, false}} {
		t.Run(row.call, func(t *testing.T) {
			live(t, func(r *rig) {
				last := manifest("zz", "img:1")
				var docs []string
				for k := range row.n {
					docs = append(docs, manifest(fmt.Sprintf("a%d", k), "img:1"))
				}
				if row.goes {
					r.want(append(docs, last)...)
					r.after(time.Minute)
				}
				for k := range row.n {
					r.Fault(critest.On(row.call).Of(fmt.Sprintf("a%d-n", k)).Hang())
				}
				if row.goes {
					r.want(last)
					r.after(time.Second)
					r.want()
				} else {
					r.want(docs...)
					r.after(time.Minute)
					r.want(append(docs, last)...)
				}
				took := r.until(func() bool {
					_, there := r.Sandbox("zz-n")
					if row.goes {
						return !there
					}
					return slices.Contains(r.Running(), "default/zz-n/c")
				})
				if took > 35*time.Second {
					t.Errorf("the other pod waits %s", took)
				}
				r.after(20 * time.Minute) // the calls are made again, and hang again
				r.want(manifest("late", "img:1"))
				if took := r.until(func() bool { return slices.Contains(r.Running(), "default/late-n/c") }); took > 5*time.Second {
					t.Errorf("a pod that comes later waits %s", took)
				}
				r.ClearFaults()
			})
		})
	}
}

// A call that waits for its turn is not said to hang.
func TestWhatWaitsForItsTurnIsNotSaidToHang(t *testing.T) {
	live(t, func(r *rig) {
		r.Takes("RunPodSandbox", 4*time.Second)
		var docs []string
		for k := range 40 { // 8 at a time: 20 s
			docs = append(docs, manifest(fmt.Sprintf("a%d", k), "img:1"))
		}
		r.want(docs...)
		r.after(15 * time.Second)
		waiting := 0
		for _, p := range r.store.Pods() {
			if w := p.Status.ContainerStatuses[0].State.Waiting; w != nil {
				waiting++
				if strings.Contains(w.Message, "not answered") {
					t.Errorf("a pod that waits for its turn says %+v", w)
				}
			}
		}
		if waiting < 8 {
			t.Errorf("%d wait", waiting)
		}
		r.after(time.Minute)
		if strings.Contains(r.log.String(), "hangs") || len(r.Running()) != len(docs) {
			t.Errorf("%d run; the log:\n%s", len(r.Running()), r.log)
		}
	})
}
