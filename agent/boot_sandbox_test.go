package agent

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
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
