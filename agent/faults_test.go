package agent

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/metrics"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/manifests"
)

// poisonous runs a test beside a runtime over whose calls of one kind the agent
// panics, wherever it makes them, while on is set.
func poisonous(t *testing.T, poison func(args any) bool, test func(r *rig, on *atomic.Bool)) {
	var on atomic.Bool
	liveWith(t, func(r *rig) {
		r.AddImage("img:bad")
		r.mangle = func(args, _ any) {
			if on.Load() && poison(args) {
				panic("poison")
			}
		}
	}, func(r *rig) { test(r, &on) })
}

// isContained checks what is told of a panic: counted, said once with its
// stack, and an event of the pod.
func (r *rig) isContained(what string) {
	r.Helper()
	if n := r.samples()["monopod_pod_panics_total"]; n < 1 {
		r.Errorf("%v panics are counted", n)
	}
	log := r.log.String()
	if n := strings.Count(log, "stack="); n != 1 || !strings.Contains(log, `msg="`+what+` failed"`) {
		r.Errorf("said %d times with a stack; the log:\n%s", n, log)
	}
	if all := strings.Join(r.happened("bad-n"), "\n"); !strings.Contains(all, what+": monopod itself went wrong, please report it: panic: poison") {
		r.Errorf("events of the pod:\n%s", all)
	}
}

// Each goroutine that works for a pod, and the call in it over which it panics.
func TestAPanicInTheWorkOnOnePodIsThatPodsAlone(t *testing.T) {
	with := func(hooks string) string {
		return strings.Replace(manifest("bad", "img:bad", "terminationGracePeriodSeconds: 1"), `"img:bad"}`, `"img:bad", `+hooks+`}`, 1)
	}
	isExec := func(args any) bool { _, ok := args.(*rt.ExecSyncRequest); return ok }
	for name, row := range map[string]struct {
		doc    string
		poison func(args any) bool
		what   string
	}{
		"an action": {
			doc: manifest("bad", "img:bad"), what: "sandbox creation",
			poison: func(args any) bool {
				q, ok := args.(*rt.RunPodSandboxRequest)
				return ok && q.Config.Metadata.Name == "bad-n"
			}},
		"the look for an image": {
			doc: manifest("bad", "img:bad"), what: "image fetch",
			poison: func(args any) bool {
				q, ok := args.(*rt.ImageStatusRequest)
				return ok && strings.HasSuffix(q.Image.Image, "img:bad")
			}},
		"a pull": {
			doc: strings.Replace(manifest("bad", "img:bad"), `"img:bad"}`, `"img:bad", imagePullPolicy: Always}`, 1), what: "image pull",
			poison: func(args any) bool { _, ok := args.(*rt.PullImageRequest); return ok }},
		"a postStart hook": {doc: with("lifecycle: {postStart: {exec: {command: [poison]}}}"), poison: isExec, what: "postStart hook"},
		"a probe":          {doc: with("readinessProbe: {exec: {command: [poison]}}"), poison: isExec, what: "probe run"},
	} {
		t.Run(name, func(t *testing.T) {
			poisonous(t, row.poison, func(r *rig, on *atomic.Bool) {
				on.Store(true)
				r.want(manifest("good", "img:1"), row.doc)
				r.after(10 * time.Minute)
				if st := r.status("default/good-n"); !podstatus.IsReady(&st) {
					r.Errorf("the other pod: %+v", st)
				}
				if st := r.status("default/bad-n"); podstatus.IsReady(&st) {
					r.Errorf("the pod seems well: %+v", st)
				}
				r.isContained(row.what)
				on.Store(false)
				r.after(10 * time.Minute)
				if st := r.status("default/bad-n"); !podstatus.IsReady(&st) {
					r.Errorf("the pod does not recover: %+v", st)
				}
			})
		})
	}
}

func TestAPanicInAPassIsAFailedPass(t *testing.T) {
	isLook := func(args any) bool { _, ok := args.(*rt.ContainerStatusRequest); return ok }
	poisonous(t, isLook, func(r *rig, on *atomic.Bool) {
		on.Store(true)
		r.want(manifest("bad", "img:bad"))
		r.after(10 * time.Minute)
		if st := r.status("default/bad-n"); st.Reason != plan.ReasonFault || !strings.Contains(st.Message, "panic: poison") {
			r.Errorf("status %+v", st)
		}
		r.isContained("pod sync")
		before := r.samples()["monopod_pod_panics_total"]
		r.after(10 * time.Minute)
		if tries := r.samples()["monopod_pod_panics_total"] - before; tries < 30 || tries > 90 { // every ten seconds
			r.Errorf("tried again %v times in ten minutes", tries)
		}
		on.Store(false)
		r.after(time.Minute)
		if st := r.status("default/bad-n"); !podstatus.IsReady(&st) || st.Reason != "" {
			r.Errorf("the pod does not recover: %+v", st)
		}
	})
}

func TestAPanicInAStopIsTriedAgain(t *testing.T) {
	isStop := func(args any) bool { _, ok := args.(*rt.StopContainerRequest); return ok }
	poisonous(t, isStop, func(r *rig, on *atomic.Bool) {
		r.want(manifest("bad", "img:bad", "terminationGracePeriodSeconds: 1"))
		on.Store(true)
		r.want()
		r.after(time.Minute)
		r.isContained("container stop")
		on.Store(false)
		r.after(time.Minute)
		r.leavesNothing()
	})
}

// A hook that the agent fails at does not keep its container from stopping.
func TestAPanicInAPreStopHookDoesNotKeepThePod(t *testing.T) {
	isExec := func(args any) bool { _, ok := args.(*rt.ExecSyncRequest); return ok }
	poisonous(t, isExec, func(r *rig, on *atomic.Bool) {
		m := manifest("bad", "img:bad", "terminationGracePeriodSeconds: 1")
		r.want(strings.Replace(m, `"img:bad"}`, `"img:bad", lifecycle: {preStop: {exec: {command: [poison]}}}}`, 1))
		on.Store(true)
		r.want()
		r.after(time.Minute)
		r.isContained("preStop hook")
		r.leavesNothing()
	})
}

func TestAPanicInAdmissionRefusesThatPod(t *testing.T) {
	live(t, func(r *rig) {
		pods, _ := manifests.Decode("/m/bad.yaml", []byte(manifest("bad", "img:bad")), r.options)
		r.stop()
		r.stop = func() {}
		r.sync.table.Uids = nil // of which it takes one
		r.sync.pods.offer(pods)
		for range 2 {
			r.sync.apply.decide(r.Context(), r.sync.pods.of(pods[0].Key()))
		}
		if got := r.sync.pods.see(pods[0].Key()).Now.Refused; got == nil || got.Why.Reason != "UnexpectedAdmissionError" || !strings.Contains(got.Why.Message.String(), "panic: ") {
			r.Errorf("refused with %+v", got)
		}
		if n := strings.Count(r.log.String(), "stack="); n != 1 {
			r.Errorf("said %d times with a stack", n)
		}
		r.shows(map[string]float64{"monopod_pod_panics_total": 2})
	})
}

// Which version of the pod is to run is not known: the one that runs stays, and no other pod
// notices.
func TestAPanicOverAPodNameIsTriedAgainInAMinute(t *testing.T) {
	live(t, func(r *rig) {
		asks, poison := r.sync.shared.StopsFirst, &atomic.Bool{}
		poison.Store(true)
		r.want(manifest("bad", "img:1"))
		r.sync.shared.StopsFirst = func(p *v1.Pod) bool {
			if poison.Load() && p.Name == "bad-n" {
				panic("poison")
			}
			return asks(p)
		}
		r.want(manifest("bad", "img:2", "hostname: other"), manifest("good", "img:1"))
		r.expect("default/bad-n/c", "default/good-n/c")
		runs := func() string { c, _ := r.Container("default/bad-n/c"); return c.Config.Image.UserSpecifiedImage }
		if image := runs(); image != "img:1" {
			r.Errorf("it runs %s", image)
		}
		if f := r.store.Manifests().Files[0]; !f.Held || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "panic: poison") {
			r.Errorf("of its manifest is said %+v", f)
		}
		poison.Store(false)
		r.after(59 * time.Second)
		if image := runs(); image != "img:1" {
			r.Errorf("it runs %s", image)
		}
		r.after(10 * time.Second)
		if image := runs(); image != "img:2" {
			r.Errorf("after a minute it runs %s", image)
		}
	})
}

// A removal, too, is the pod's own.
func TestAPanicOverARemovalIsTriedAgainInAMinute(t *testing.T) {
	live(t, func(r *rig) {
		asks, poison := r.sync.apply.rules, &atomic.Bool{}
		r.sync.apply.rules = func() rollout.Rules {
			if poison.Load() {
				panic("poison")
			}
			return asks()
		}
		r.want(manifest("bad", "img:1"), manifest("good", "img:1"))
		poison.Store(true)
		r.want(manifest("good", "img:1"))
		r.expect("default/bad-n/c", "default/good-n/c")
		poison.Store(false)
		r.after(2 * time.Minute)
		r.expect("default/good-n/c")
	})
}

func TestAPanicInAScrapeLeavesTheAgent(t *testing.T) {
	log := &lines{}
	a := &Agent{metrics: metrics.New(metrics.Config{}), log: slog.New(slog.NewTextHandler(log, nil))} // which has nothing to tell of
	for range 3 {
		if s := a.containedState(); s.ActivePods != 0 {
			t.Errorf("state %+v", s)
		}
	}
	if n := strings.Count(log.String(), "stack="); n != 1 {
		t.Errorf("said %d times with a stack: %s", n, log)
	}
}
