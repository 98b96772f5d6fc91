package agent

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
)

// A runtime keeps the address of a sandbox until it is stopped, dead or not.
func TestADeadSandboxIsStoppedBeforeItsSuccessor(t *testing.T) {
	live(t, func(r *rig) {
		docs := []string{manifest("web", "img:1"), manifest("job", "img:1", "restartPolicy: Never")}
		r.want(docs...)
		r.expect("default/job-n/c", "default/web-n/c")
		web, _ := r.Sandbox("web-n")
		job, _ := r.Sandbox("job-n")
		r.stop()
		r.reboot()
		r.ForgetCalls()
		r.start()
		r.want(docs...)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		var did []string
		for _, c := range r.Calls() {
			switch q := c.Request.(type) {
			case *rt.StopPodSandboxRequest:
				did = append(did, "stop "+q.PodSandboxId)
			case *rt.RunPodSandboxRequest:
				did = append(did, "run "+q.Config.Metadata.Name)
			}
		}
		for _, id := range []string{web.ID, job.ID} {
			if n := len(slices.DeleteFunc(slices.Clone(did), func(s string) bool { return s != "stop "+id })); n != 1 {
				t.Errorf("the dead sandbox %s was stopped %d times, want once: %q", id, n, did)
			}
		}
		if slices.Index(did, "run web-n") < slices.Index(did, "stop "+web.ID) {
			t.Errorf("%q: web-n got a new sandbox before the old one was stopped", did)
		}
	})
}

// What removes the sandbox releases what the runtime cannot.
func TestADeadSandboxThatCannotBeStoppedHoldsUpNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		r.stop()
		r.reboot()
		r.Fault(critest.On("StopPodSandbox").Fail(codes.Unknown, "no plugin"))
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

// forgetful is a reboot after which the runtime knows no pod, as CRI-O's.
func (r *rig) forgetful() {
	r.reboot()
	for _, b := range r.Sandboxes() {
		r.RemoveSandboxBehindBack(b.ID)
	}
}

func TestAPodThatRunsOnceDoesSoWhereTheRuntimeForgetsAllAtABoot(t *testing.T) {
	live(t, func(r *rig) {
		docs := []string{manifest("web", "img:1"), manifest("job", "img:1", "restartPolicy: Never")}
		r.want(docs...)
		r.after(time.Minute)
		r.expect("default/job-n/c", "default/web-n/c")
		r.kill()
		r.forgetful()
		r.start()
		r.want(docs...)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed {
			r.Errorf("the job is %s", st.Phase)
		}
	})
}

// Its end is recorded once its sandbox is stopped. What was reported before that counts, if the power
// goes meanwhile.
func TestAPodWhoseEndWasReportedEndedSoWhereTheRuntimeForgetsAllAtABoot(t *testing.T) {
	for want, code := range map[v1.PodPhase]int32{v1.PodSucceeded: 0, v1.PodFailed: 3} {
		t.Run(string(want), func(t *testing.T) {
			live(t, func(r *rig) {
				job := manifest("job", "img:1", "restartPolicy: Never")
				r.want(job)
				r.after(time.Minute)
				r.Fault(critest.On("StopPodSandbox").Hang())
				r.Exit("job-n/c", code)
				r.after(10 * time.Second)
				if st := r.status("default/job-n"); st.Phase != want {
					r.Fatalf("the job is %s", st.Phase)
				}
				r.kill()
				r.ClearFaults()
				r.forgetful()
				r.start()
				r.want(job)
				r.after(time.Minute)
				r.expect()
				if st := r.status("default/job-n"); st.Phase != want {
					r.Errorf("the job is %s after the boot", st.Phase)
				}
			})
		})
	}
}

func TestAPodThatRunsOnceAndDidNotYetRunsAfterTheBoot(t *testing.T) {
	live(t, func(r *rig) {
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.Fault(critest.On("RunPodSandbox").Fail(codes.Unknown, "no network yet"))
		r.want(job)
		r.after(time.Minute)
		r.kill()
		r.ClearFaults()
		r.forgetful()
		r.start()
		r.want(job)
		r.after(time.Minute)
		r.expect("default/job-n/c")
		b, _ := r.Sandbox("job-n")
		r.RemoveSandboxBehindBack(b.ID) // in the same boot as it started
		r.after(time.Minute)
		r.expect("default/job-n/c")
		r.kill()
		r.forgetful()
		r.start()
		r.want(job)
		r.after(time.Minute)
		r.expect()
	})
}

func TestAPodThatRunsOnceRunsAgainWhereSomebodyRemovedItFromTheRuntime(t *testing.T) {
	live(t, func(r *rig) {
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.want(job)
		r.after(time.Minute)
		b, _ := r.Sandbox("job-n")
		r.RemoveSandboxBehindBack(b.ID)
		r.after(time.Minute)
		r.expect("default/job-n/c")
	})
}
