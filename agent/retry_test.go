package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/plan"
	"monopod/agent/runtimewords"
	"monopod/agent/slots"
	"monopod/cri/critest"
)

// until waits for at most an hour, in steps of a second, and returns how long it took.
func (r *rig) until(done func() bool) time.Duration {
	r.Helper()
	start := time.Now()
	for !done() {
		if time.Since(start) > time.Hour {
			r.Fatal("it has not happened within an hour")
		}
		r.after(time.Second)
	}
	return time.Since(start)
}

// A sandbox that dies at once is made again, ever more rarely, and what died goes.
func TestASandboxThatDiesAtOnceIsNotMadeWithoutEnd(t *testing.T) {
	live(t, func(r *rig) {
		r.Takes("RunPodSandbox", 200*time.Millisecond)
		dies := critest.On("RunPodSandbox")
		dies.After(func() {
			for _, b := range r.Sandboxes() {
				if b.Ready {
					r.KillSandbox(b.ID)
				}
			}
		})
		r.Fault(dies)
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if n := r.Count("RunPodSandbox"); n < 4 || n > 12 {
			t.Errorf("%d sandboxes in the first minute", n)
		}
		r.after(time.Hour)
		if n := r.Count("RunPodSandbox"); n < 50 || n > 80 {
			t.Errorf("%d sandboxes in an hour", n)
		}
		if n := len(r.Sandboxes()); n > 3 {
			t.Errorf("%d sandboxes are left", n)
		}
		r.ClearFaults()
		r.after(2 * time.Minute)
		r.expect("default/web-n/c")
	})
}

// unsaidNetwork is a runtime that does not say which network sandboxes have; with a
// network, one that gives them none.
func unsaidNetwork(network *rt.PodSandboxNetworkStatus) func(args, reply any) {
	return func(_, reply any) {
		if st, ok := reply.(*rt.PodSandboxStatusResponse); ok && st.Status != nil {
			st.Status = proto.Clone(st.Status).(*rt.PodSandboxStatus)
			st.Status.Network = network
		}
	}
}

func TestASandboxWithoutAddressIsNotMadeWithoutEnd(t *testing.T) {
	live(t, func(r *rig) {
		r.stop()
		r.mangle = unsaidNetwork(&rt.PodSandboxNetworkStatus{})
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if n := r.Count("RunPodSandbox"); n < 4 || n > 12 {
			t.Errorf("%d sandboxes in the first minute", n)
		}
		if n := len(r.Sandboxes()); n > 3 {
			t.Errorf("%d sandboxes are left", n)
		}
		if c := condition0(r.status("default/web-n")); c.Reason != plan.SandboxUnusable || !strings.Contains(c.Message, "its sandbox has no address; it was made again") {
			t.Errorf("condition %+v", c)
		}
	})
}

// A runtime that carries out calls and breaks off their answers is up: its events must
// not make the next try come at once.
func TestBrokenAnswersAreRetriedWithABackOff(t *testing.T) {
	live(t, func(r *rig) {
		r.stop()
		r.mangle = unsaidNetwork(&rt.PodSandboxNetworkStatus{})
		for _, call := range []string{"StopPodSandbox", "RunPodSandbox"} {
			r.Fault(critest.On(call).LoseAnswer())
		}
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if n := r.Count("RunPodSandbox"); n < 2 || n > 20 {
			t.Errorf("%d sandboxes in the first minute", n)
		}
	})
}

// What the runtime does not say is no reason to kill.
func TestAnUnknownNetworkStopsNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		before, _ := r.Container("c")
		ip := r.status("default/web-n").PodIP
		r.stop()
		r.mangle = unsaidNetwork(nil)
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if c, _ := r.Container("c"); c.ID != before.ID || r.Count("RunPodSandbox") != 1 {
			t.Errorf("it was replaced: %d sandboxes", r.Count("RunPodSandbox"))
		}
		if got := r.status("default/web-n").PodIP; got != ip || ip == "" {
			t.Errorf("its address is %q, was %q", got, ip)
		}
		if c := condition0(r.status("default/web-n")); c.Status != v1.ConditionUnknown || c.Reason != plan.NetworkUnknown {
			t.Errorf("condition %+v", c)
		}
		if n := strings.Count(strings.Join(r.happened("web-n"), "\n"), plan.NetworkUnknown); n != 1 {
			t.Errorf("%d events say so: %q", n, r.happened("web-n"))
		}
		r.stop()
		r.mangle = nil
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if c := condition0(r.status("default/web-n")); c.Status != v1.ConditionTrue || c.Message != "" {
			t.Errorf("later its condition is %+v", c)
		}
	})
}

// The runtime keeps what an agent with another root dir made.
func TestANameThatSomebodyElseHoldsIsSaidAndPassedBy(t *testing.T) {
	live(t, func(r *rig) {
		r.shared = true
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		r.stop()
		noErr(r.T, os.RemoveAll(r.dir))
		r.Reboot()
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(20 * time.Second)
		if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" {
			t.Errorf("at first it %+v", w)
		}
		r.after(5 * time.Minute)
		r.expect("default/web-n/c")
		if !strings.Contains(r.log.String(), "reserved") {
			t.Error("the log does not say that the name is reserved")
		}
	})
}

// Networks that hang keep no container of another pod from its restart.
func TestSandboxesThatHangDelayNoRestart(t *testing.T) {
	live(t, func(r *rig) {
		docs := []string{manifest("etcd", "img:1", "hostNetwork: true")}
		r.want(docs...)
		for k := range 8 {
			name := fmt.Sprintf("net%d", k)
			r.Fault(critest.On("RunPodSandbox").Of(name + "-n").Hang())
			docs = append(docs, manifest(name, "img:1"))
		}
		r.want(docs...)
		r.after(time.Second)
		r.Exit("etcd-n/c", 1)
		r.after(time.Second)
		r.expect("default/etcd-n/c")
		r.after(2 * slots.HangsAfter)
		r.want(append(docs, manifest("late", "img:1"))...)
		r.after(2 * time.Second)
		r.expect("default/etcd-n/c", "default/late-n/c")
		st := r.status("default/net0-n").ContainerStatuses[0].State.Waiting
		if st == nil || !strings.Contains(st.Message, "has not answered since") {
			t.Errorf("a pod whose sandbox hangs says %+v", st)
		}
		r.ClearFaults()
	})
}

func TestTeardownsThatHangDelayNoOther(t *testing.T) {
	live(t, func(r *rig) {
		all := []string{manifest("a", "img:1"), manifest("b", "img:1"), manifest("c", "img:1")}
		r.want(all...)
		for _, name := range []string{"a-n", "b-n"} {
			r.Fault(critest.On("StopPodSandbox").Of(name).Hang())
		}
		r.want(all[2])
		r.after(time.Second)
		r.want()
		took := r.until(func() bool { _, there := r.Sandbox("c-n"); return !there })
		if took > slots.HangsAfter+5*time.Second {
			t.Errorf("c goes after %s", took)
		}
		r.ClearFaults()
	})
}

// A pod comes back while its own removal hangs.
func TestAPodReturnsAfterARemovalThatHung(t *testing.T) {
	for _, call := range []string{"RemovePodSandbox", "StopPodSandbox", "RemoveContainer"} {
		t.Run(call, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				r.Fault(critest.On(call).Hang())
				r.want()
				r.after(time.Minute)
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				r.ClearFaults()
				r.after(5 * time.Minute)
				r.expect("default/web-n/c")
				if strings.Contains(r.log.String(), "panic") {
					r.Error("the worker panicked")
				}
			})
		})
	}
}

// A pod whose sandbox hangs can be removed, and another version of it can start.
func TestAHangingSandboxIsGivenUpWhenItIsNotWanted(t *testing.T) {
	for name, next := range map[string][]string{"removed": nil, "edited": {manifest("web", "img:2")}} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Fault(critest.On("RunPodSandbox").Times(1).Hang())
				r.want(manifest("web", "img:1"))
				r.after(time.Second)
				r.want(next...)
				took := r.until(func() bool {
					_, there := r.store.Pod("default/web-n")
					return !there || len(r.Running()) > 0
				})
				if took > slots.HangsAfter+5*time.Second {
					t.Errorf("it took %s", took)
				}
				r.ClearFaults()
			})
		})
	}
}

// A dead container that cannot be removed does not make its pod deaf.
func TestAContainerThatCannotBeRemovedDelaysNoRestart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.Exit("c", 1)
		r.after(time.Minute)
		r.Fault(critest.On("RemoveContainer").Fail(codes.Unknown, "device or resource busy"))
		r.Exit("c", 1)
		r.after(20 * time.Minute)
		for range 3 {
			r.after(11*time.Minute + 3*time.Second)
			r.Exit("c", 1)
			r.after(time.Second)
			r.expect("default/web-n/c")
		}
		n := r.Count("RemoveContainer")
		r.after(10 * time.Minute)
		if n := r.Count("RemoveContainer") - n; n > 400 {
			t.Errorf("%d tries in 10 minutes", n)
		}
		if !strings.Contains(r.log.String(), "device or resource busy") {
			t.Error("the log does not say why")
		}
		var st v1.PodStatus = r.status("default/web-n")
		if st.Phase != v1.PodRunning {
			t.Errorf("phase %s", st.Phase)
		}
	})
}

// A success that has no effect is repeated with a back-off, as a failure is.
func TestAStopWithoutEffectIsNotRepeatedWithoutEnd(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("job", "img:1", "restartPolicy: Never"))
		r.Fault(critest.On("StopPodSandbox").Fail(codes.NotFound, "no such sandbox"))
		r.Exit("c", 2)
		r.after(10 * time.Minute)
		if n := r.Count("StopPodSandbox"); n < 5 || n > 100 {
			t.Errorf("%d calls in 10 minutes", n)
		}
		r.ClearFaults()
	})
}

// CRI-O makes no container of a command that cannot be executed: the status says why in
// its words, by which a run ends, and goes on saying so between the tries.
func TestWhatCannotBeCreatedGoesOnSayingWhy(t *testing.T) {
	said := func(r *rig) (reason, message string) {
		st := r.status("default/job-n")
		if w := st.ContainerStatuses[0].State.Waiting; w != nil && w.Reason == "CreateContainerError" {
			return w.Reason, w.Message
		}
		return condition0(st).Reason, condition0(st).Message
	}
	for call, row := range map[string]struct {
		words, reason string
		cause         runtimewords.Cause
	}{
		"CreateContainer": {"container create failed: executable file `nosuch` not found in $PATH: No such file or directory\n", "CreateContainerError", runtimewords.NotFound},
		"RunPodSandbox":   {"pod set memory limit 1048576 too low; should be at least 12582912 bytes", "FailedCreatePodSandBox", runtimewords.MemoryTooLow},
	} {
		live(t, func(r *rig) {
			r.Fault(critest.On(call).Fail(codes.Unknown, row.words))
			r.want(manifest("job", "img:1", "restartPolicy: Never"))
			for n := range 30 {
				r.after(time.Second)
				if reason, message := said(r); reason != row.reason || runtimewords.Of(runtimewords.Create, message) != row.cause {
					r.Fatalf("%s: after %d s: %s: %s", call, n+1, reason, message)
				}
			}
		})
	}
}

func TestADeadSandboxIsStoppedOnceHoweverLongItsSuccessorCannotBeSetUp(t *testing.T) {
	live(t, func(r *rig) {
		path := filepath.Join(r.dir, "data")
		noErr(t, os.Mkdir(path, 0o700))
		r.want(strings.Replace(manifest("web", "img:1", "volumes: [{name: v, hostPath: {path: "+path+", type: Directory}}]"), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1))
		r.after(time.Minute)
		r.ForgetCalls()
		noErr(t, os.Remove(path))
		r.KillSandbox("web-n")
		r.after(20 * time.Minute)
		if n := r.Count("StopPodSandbox"); n != 1 {
			t.Errorf("%d calls stopped it", n)
		}
		if n := strings.Count(r.log.String(), `msg="sandbox stopped"`); n != 1 {
			t.Errorf("its stop is logged %d times", n)
		}
		noErr(t, os.Mkdir(path, 0o700))
		r.after(2 * time.Minute)
		r.runsImage("img:1")
	})
}
