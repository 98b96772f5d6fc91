package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/status"
	"monopod/cri/critest"
)

// problems checks what is reported as wrong with web beside its status.
func (r *rig) problems(want ...string) {
	r.Helper()
	if got := status.ProblemsOf(r.pod("default/web-n")); !slices.Equal(got, want) {
		r.Errorf("problems %q, want %q", got, want)
	}
}

func TestAFailingProbeIsAProblemAtOnceAndUntilItSucceeds(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		patient := strings.ReplaceAll(byExec("liveness")+", "+byExec("readiness"), "failureThreshold: 2", "failureThreshold: 99")
		r.want(probedManifest("web", patient))
		r.after(20 * time.Second)
		r.problems()
		a.fail("liveness", "readiness")
		r.after(2 * time.Second)
		r.problems("container c: Liveness probe failed: it is broken", "container c: Readiness probe failed: it is broken")
		a.fail("readiness")
		r.after(11 * time.Second)
		r.problems("container c: Readiness probe failed: it is broken")
		a.fail()
		r.after(11 * time.Second)
		r.problems()
	})
}

func TestANewVersionThatWaitsIsAProblemOfTheOldOne(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:2", "hostname: other"))
		r.after(2 * time.Second)
		r.problems("a new version waits until this one has stopped")
		r.after(time.Minute)
		r.problems()
		r.want()
		r.after(2 * time.Second)
		r.problems()
	})
}

func TestARemovalThatFailsIsAProblem(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.Fault(critest.On("StopPodSandbox").Fail(codes.Internal, "device is held"))
		r.want()
		r.after(time.Minute)
		if got := strings.Join(status.ProblemsOf(r.pod("default/web-n")), "; "); !strings.HasPrefix(got, "FailedKillPod: ") || !strings.Contains(got, "device is held") {
			r.Errorf("problems %q", got)
		}
	})
}

func TestAPassThatFailsIsAProblemUntilOneSucceeds(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.Fault(critest.On("ContainerStatus").Fail(codes.Internal, "no answer for you"))
		r.Exit("default/web-n/c", 1)
		r.after(10 * time.Second)
		if got := status.ProblemsOf(r.pod("default/web-n")); len(got) != 1 || !strings.HasPrefix(got[0], "FailedSync: ") || !strings.Contains(got[0], "no answer for you") {
			r.Errorf("problems %q", got)
		}
		r.ClearFaults()
		r.after(time.Minute)
		r.problems()
	})
}

func TestAPodWhoseManifestWasGoneForAWhileSaysSo(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm(), critest.Runs())
		r.want(manifest("web", "img:1"))
		r.want()
		r.after(2 * time.Second)
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if text := `"pod removed" pod=default/web-n reason="its manifest was gone for a while"`; !strings.Contains(r.log.String(), text) {
			r.Errorf("the log does not say %s:\n%s", text, r.log.String())
		}
	})
}
