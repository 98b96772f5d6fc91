package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/pleg"
	"monopod/cri/critest"
)

func TestAPodThatWasMadeAndLostBetweenTwoRelistsIsMadeAgain(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.DropEvents(10)
		r.RemoveSandboxBehindBack("web-n")
		r.after(pleg.RelistWithEvents + time.Second)
		r.expect("default/web-n/c")
	})
}

func TestAWorkerThatANewWishCalledOutOfItsPauseStillListens(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "terminationGracePeriodSeconds: 0"))
		r.Fault(critest.On("ListPodSandbox").Nth(1).Fail(codes.Unknown, "the disk is full"))
		r.Exit("c", 1) // and the look at it fails
		r.settle()
		r.want(manifest("web", "img:2", "terminationGracePeriodSeconds: 0"))
		r.expect("default/web-n/c")
		r.Exit("c", 1)
		r.after(time.Hour)
		r.expect("default/web-n/c")
	})
}

// A created container is killed before it or its sandbox goes: a runtime may have a process
// of it that SIGTERM does not end, and waits for that as long as the call may take.
func TestWhatWasNeverStartedIsKilledBeforeItGoes(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(r *rig)
	}{
		{"with its pod", func(r *rig) { r.start(); r.want() }},
		{"after its sandbox", func(r *rig) { r.KillSandbox("web-n"); r.start(); r.want(manifest("web", "img:1")) }},
		{"for another version", func(r *rig) {
			r.Fault(critest.On("StartContainer").Times(1).Fail(codes.Unknown, "the disk is full"))
			r.start()
			r.want(manifest("web", "img:1"))
			r.want(manifest("web", "img:2"))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Fault(critest.On("StartContainer").Nth(1).Hang())
				r.want(manifest("web", "img:1"))
				r.kill()
				c := r.Containers()[0]
				r.ForgetCalls()
				row.then(r)
				r.after(time.Minute)
				killed := false
				for _, call := range r.Calls() {
					switch q := call.Request.(type) {
					case *rt.StopContainerRequest:
						killed = killed || q.ContainerId == c.ID && q.Timeout == 0
					case *rt.RemoveContainerRequest, *rt.StopPodSandboxRequest, *rt.RemovePodSandboxRequest:
						if text := fmt.Sprint(q); !killed && (strings.Contains(text, c.ID) || strings.Contains(text, c.Sandbox)) {
							t.Errorf("%s before it is killed", call.Method)
						}
					}
				}
				if _, there := r.Container(c.ID); there || !killed {
					t.Errorf("it is there: %v, it was killed: %v", there, killed)
				}
			})
		})
	}
}

// fixed is a manifest with a uid of its own.
func fixed(image string, extra ...string) string {
	return strings.Replace(manifest("web", image, extra...), "{name: web}", "{name: web, uid: my-own-uid}", 1)
}

func TestTheStartTimeSurvivesADeathBeforeTheFirstReport(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		began := r.status("default/web-n").StartTime
		r.kill()
		r.after(time.Hour)
		r.start()
		r.want(manifest("web", "img:1"))
		if st := r.status("default/web-n"); !st.StartTime.Equal(began) {
			t.Errorf("it started at %s, and now at %s", began, st.StartTime)
		}
	})
}

// What is on disk of the predecessor is not taken for the successor's.
func TestAReplacementUnderTheSameUIDStartsOverAfterAnyDeath(t *testing.T) {
	for _, when := range []string{"before it is accepted", "before it is reported"} {
		t.Run(when, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(fixed("img:1", "terminationGracePeriodSeconds: 1"))
				r.Exit("c", 1)
				r.after(time.Hour)
				if when == "before it is accepted" {
					life := r.life
					r.Fault(critest.On("ListPodSandbox").Before(func() {
						if left, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json")); len(left) == 0 {
							life.cutOff()
						}
					}))
				}
				r.want(fixed("img:2", "hostname: other", "terminationGracePeriodSeconds: 1"))
				if when == "before it is reported" {
					r.life.cutOff()
				}
				if !r.life.over.Load() {
					t.Fatal("the agent lives")
				}
				r.bury()
				r.ClearFaults()
				r.start()
				r.want(fixed("img:2", "hostname: other", "terminationGracePeriodSeconds: 1"))
				r.after(time.Minute)
				r.expect("default/web-n/c")
				if st := r.status("default/web-n"); time.Since(st.StartTime.Time) > 10*time.Minute || st.ContainerStatuses[0].RestartCount != 0 {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}
