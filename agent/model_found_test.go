package agent

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// A runtime that answers and cannot list what it has is asked now and then, and
// is said to be down.
func TestListingsThatFailAreNotTriedWithoutEnd(t *testing.T) {
	for _, method := range []string{"ListPodSandbox", "ListContainers"} {
		t.Run(method, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				var asked atomic.Int32
				r.Fault(critest.On(method).Before(func() {
					if asked.Add(1) > 5000 { // else a loop without a pause would never end
						time.Sleep(time.Minute)
					}
				}).Fail(codes.Unknown, "the store is broken"))
				r.after(10 * time.Minute)
				if n := asked.Load(); n < 500 || n > 1000 { // four times a second for a minute, then once
					t.Errorf("asked %d times in ten minutes", n)
				}
				if n := strings.Count(r.log.String(), "runtime does not answer"); n != 1 || r.watch.Up() {
					t.Errorf("it is said %d times that the runtime does not answer; up: %v", n, r.watch.Up())
				}
				r.expect("default/web-n/c")
				r.ClearFaults()
				r.after(2 * time.Minute)
				r.want(manifest("web", "img:1"), manifest("late", "img:1"))
				r.expect("default/late-n/c", "default/web-n/c")
			})
		})
	}
}

// A runtime that denies what it lists is not asked without end.
func TestCallsThatFindNothingAreNotTriedWithoutEnd(t *testing.T) {
	for _, method := range []string{"CreateContainer", "StartContainer", "RemoveContainer", critest.Changes} {
		t.Run(method, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				var asked atomic.Int32
				r.Fault(critest.On(method).Before(func() {
					if asked.Add(1) > 1000 {
						time.Sleep(time.Minute)
					}
				}).Fail(codes.NotFound, "not found"))
				r.Exit("c", 2)
				r.after(10 * time.Minute)
				if n := asked.Load(); n > 300 {
					t.Errorf("asked %d times in ten minutes", n)
				}
				r.ClearFaults()
				r.after(10 * time.Minute)
				r.expect("default/web-n/c")
			})
		})
	}
}

// An address that the runtime did not tell is asked for until it does.
func TestAnAddressThatWasUnknownIsReportedOnceItIsKnown(t *testing.T) {
	answers := &hearsay{calls: map[string]int{}}
	liveWith(t, func(r *rig) { r.mangle = answers.mangle }, func(r *rig) {
		answers.setNetwork("unknown")
		r.want(manifest("web", "img:1"))
		r.after(time.Hour)
		if n := r.Count("PodSandboxStatus"); n > 400 || r.status("default/web-n").PodIP != "" {
			t.Errorf("asked %d times in an hour", n)
		}
		answers.setNetwork("")
		r.after(15 * time.Second)
		if b, _ := r.Sandbox("web-n"); r.status("default/web-n").PodIP != b.IP {
			t.Errorf("reports %q, has %s", r.status("default/web-n").PodIP, b.IP)
		}
		asked := r.Count("PodSandboxStatus")
		r.after(time.Hour)
		if r.Count("PodSandboxStatus") != asked {
			t.Error("asks on")
		}
	})
}

// A pod that ends Failed is not said to have succeeded while that cannot be written down.
func TestAnEndThatCannotBeSavedIsReportedAsItIs(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.Program("c", critest.Runs().OnTerm(time.Second, 0))
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.want(job)
		r.after(time.Minute)
		junk := fill(r.T, disk)
		r.KillSandbox("job-n")
		for range 2 {
			r.after(time.Minute)
			if st := r.status("default/job-n"); st.Phase != v1.PodFailed {
				t.Errorf("it has %s, and its container %+v", st.Phase, st.ContainerStatuses[0].State)
			}
			noErr(t, os.RemoveAll(junk))
		}
	})
}

// The same with many lines: an end that the disk does not take is not said again and again, nor
// what came before it.
func TestAnEndThatCannotBeSavedIsNotSaidAgainAndAgain(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.Program("c", critest.Runs().OnTerm(time.Second, 0))
		r.want(manifest("job", "img:1", "restartPolicy: Never"))
		r.after(time.Minute)
		junk := fill(r.T, disk)
		defer func() { noErr(t, os.RemoveAll(junk)) }()
		said := len(r.log.String())
		r.KillSandbox("job-n")
		r.after(time.Hour)
		if n := strings.Count(r.log.String()[said:], "sandbox stopped"); n != 1 {
			t.Errorf("it is said %d times in an hour that the sandbox is stopped", n)
		}
	})
}

// Sandboxes that die as soon as they are made, and of which each call hangs, are one trouble: it
// is said once of each call, not of each sandbox.
func TestCallsThatHangForManySandboxesAreSaidOnce(t *testing.T) {
	live(t, func(r *rig) {
		r.Fault(critest.On("RunPodSandbox").Of("web-n").After(func() { r.KillSandbox("web-n") }))
		r.Fault(critest.On(critest.Changes).Of("web-n").HangAnswer())
		r.want(manifest("web", "img:1"))
		r.after(20 * time.Minute)
		if n := strings.Count(r.log.String(), "runtime call hangs"); n > 20 || n == 0 {
			t.Errorf("it is said %d times in 20 minutes that calls hang", n)
		}
	})
}
