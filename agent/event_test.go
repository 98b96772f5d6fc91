package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// happened returns the events about one thing in short, the latest last:
// "Warning BackOff c: message", with "x3" behind the reason of one that came
// three times.
func (r *rig) happened(name string) []string {
	var out []string
	r.events.List("").Each(func(e *v1.Event) bool {
		if e.InvolvedObject.Name != name {
			return true
		}
		s := e.Type + " " + e.Reason
		if e.Count > 1 {
			s += fmt.Sprint(" x", e.Count)
		}
		if e.InvolvedObject.FieldPath != "" {
			s += " " + e.InvolvedObject.FieldPath
		}
		out = append(out, s+": "+e.Message)
		return true
	})
	return out
}

// tells checks that all these events, or the beginnings of them, have happened
// in this order, whatever else has.
func (r *rig) tells(name string, want ...string) {
	r.Helper()
	rest := r.happened(name)
	for _, w := range want {
		k := slices.IndexFunc(rest, func(e string) bool { return strings.HasPrefix(e, w) })
		if k < 0 {
			r.Errorf("events of %s are\n%s\nwithout, or not in the order,\n%s", name, strings.Join(r.happened(name), "\n"), w)
			return
		}
		rest = rest[k+1:]
	}
}

const main = " spec.containers{c}: "

func TestEventsTellOfALife(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.want()
		r.after(31 * time.Second)
		want := []string{
			`Normal Pulled spec.containers{c}: Container image "img:1" already present on machine and can be accessed by the pod`,
			"Normal Created spec.containers{c}: Container created",
			"Normal Started spec.containers{c}: Container started",
			"Normal Killing spec.containers{c}: Stopping container c: its manifest is gone",
		}
		if got := r.happened("web-n"); !slices.Equal(got, want) {
			t.Errorf("events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		r.Stop()
		r.after(time.Minute)
		r.tells("n", "Normal NodeReady: Node n status is now: NodeReady", "Warning NodeNotReady: Node n status is now: NodeNotReady")
		r.Resume()
		r.after(time.Minute)
	})
}

func TestEventsTellOfCrashes(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		r.after(25 * time.Second) // restarted at once, after 10 s, and waiting again
		r.tells("web-n", "Normal Created x3"+main, "Normal Started x3"+main,
			"Warning BackOff x2"+main+"Back-off restarting failed container c in pod web-n_default(")
		if n := strings.Count(r.log.String(), "Back-off restarting"); n != 1 {
			t.Errorf("the back-off is logged %d times", n)
		}
	})
}

func TestEventsTellOfPulls(t *testing.T) {
	rows := []struct {
		name, policy string
		broken       bool
		want         []string
	}{
		{"it comes", "IfNotPresent", false, []string{`Normal Pulling` + main + `Pulling image "new:1"`,
			`Normal Pulled` + main + `Successfully pulled image "new:1" in 0s (0s including waiting). Image size: `, "Normal Started" + main}},
		{"it does not", "IfNotPresent", true, []string{`Normal Pulling` + main + `Pulling image "new:1"`,
			`Warning Failed` + main + `Failed to pull image "new:1": `, `Warning Failed` + main + `Error: ErrImagePull`, `Normal BackOff` + main + `Back-off pulling image "new:1"`}},
		{"it may not", "Never", false, []string{`Warning ErrImageNeverPull` + main + `Container image "new:1" is not present with pull policy of Never`,
			"Warning Failed" + main + "Error: ErrImageNeverPull"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				if row.broken {
					r.Fault(critest.On("PullImage").Fail(codes.NotFound, "no such repository"))
				}
				r.want(strings.Replace(manifest("web", "new:1"), `"new:1"`, `"new:1", imagePullPolicy: `+row.policy, 1))
				r.after(5 * time.Second)
				r.tells("web-n", row.want...)
			})
		})
	}
}

func TestEventsTellWhyNothingStarts(t *testing.T) {
	rows := []struct {
		name, call string
		want       []string
	}{
		{"no sandbox", "RunPodSandbox", []string{"Warning FailedCreatePodSandBox: Failed to create pod sandbox: "}},
		{"no container", "CreateContainer", []string{"Warning Failed" + main + "Error: "}},
		{"no start", "StartContainer", []string{"Normal Created" + main, "Warning Failed" + main + "Error: "}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Fault(critest.On(row.call).Times(1).Fail(codes.Internal, "the disk is full"))
				r.want(manifest("web", "img:1"))
				r.tells("web-n", row.want...)
				r.after(time.Minute)
				r.tells("web-n", "Normal Started"+main)
			})
		})
	}
}

func TestEventsTellOfADeadSandbox(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.KillSandbox("web-n")
		r.after(time.Minute)
		r.tells("web-n", "Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created.", "Normal Started x2"+main)
	})
}

func TestEventsTellOfProbesAndHooks(t *testing.T) {
	live(t, func(r *rig) {
		sick := strings.Replace(manifest("sick", "img:1"), `"img:1"`, `"img:1", livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 5}`, 1)
		hooked := strings.Replace(manifest("hooked", "img:1"), `"img:1"`, `"img:1", lifecycle: {postStart: {tcpSocket: {port: 80}}, preStop: {tcpSocket: {port: 80}}}`, 1)
		r.want(sick, hooked)
		r.after(9 * time.Second)
		r.tells("hooked-n", "Warning FailedPostStartHook x2"+main+"PostStartHook failed", "Normal Killing x2"+main+"FailedPostStartHook",
			"Warning FailedPreStopHook x2"+main+"PreStopHook failed")
		r.tells("sick-n", "Warning Unhealthy x2"+main+"Liveness probe failed: dial tcp: connection refused")
		r.after(2 * time.Second)
		r.tells("sick-n", "Normal Killing"+main+"Container c failed liveness probe, will be restarted", "Normal Started x2"+main)
	})
}

func TestEventsTellOfRefusalsAndDeadlines(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("crash-n/c", critest.Exits(1)) // nothing of it runs at its deadline
		r.want(manifest("big", "img:1", "nodeSelector: {no: such}"), manifest("job", "img:1", "activeDeadlineSeconds: 60"),
			manifest("crash", "img:1", "activeDeadlineSeconds: 60"))
		r.after(2 * time.Minute)
		r.tells("big-n", "Warning NodeAffinity: ")
		for _, pod := range []string{"job-n", "crash-n"} {
			if got := r.happened(pod); !slices.Contains(got, "Normal DeadlineExceeded: Pod was active on the node longer than the specified deadline") {
				t.Errorf("events of %s are %q", pod, got)
			}
		}
	})
}

func TestEventsTellOfBadManifestsOnce(t *testing.T) {
	live(t, func(r *rig) {
		bad := manifests.Snapshot{Complete: true, Files: []*manifests.File{{Path: "/m/a.yaml",
			Problems: []decode.Problem{{File: "/m/a.yaml", Line: 3, Column: 5, Field: "spec.x", Message: "unknown field"}}}}}
		for range 3 {
			r.offers <- bad
			r.settle()
		}
		want := "Warning FailedValidation: /m/a.yaml:3:5: spec.x: unknown field"
		if got := r.happened("/m/a.yaml"); len(got) != 1 || got[0] != want {
			t.Errorf("events are %q, want %q", got, want)
		}
		r.want()
		r.offers <- bad
		r.settle()
		r.tells("/m/a.yaml", "Warning FailedValidation x2: ")
	})
}
