package once

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

func TestWhatIsWaitedFor(t *testing.T) {
	p := made("web", "Never", "a", "b")
	notReady := now(p, v1.PodRunning, states{"a": runs, "b": runs})
	status.SetProblems(notReady.reported, []string{"container a: Readiness probe failed: no"})
	setUp := now(p, v1.PodPending, states{"a": waiting("ContainerCreating", ""), "b": waiting("ContainerCreating", "")})
	setUp.status.Conditions = []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse, Reason: "FailedMount", Message: "no such\ndirectory"}}
	at := time.Unix(1000, 0)
	pulled := func(v view, all ...status.Pull) view {
		status.SetPulls(v.reported, all)
		return v
	}
	const why = "image img:1 cannot be pulled: no such thing"
	for _, row := range []struct {
		name string
		view view
		want string
	}{
		{"a set-up that fails", setUp, "web: FailedMount: no such directory"},
		{"nothing is known", view{pod: p}, ""},
		{"all is on its way", now(p, v1.PodPending, states{"a": waiting("ContainerCreating", ""), "b": waiting("PodInitializing", "")}), ""},
		{"a pull", pulled(now(p, v1.PodPending, states{"a": waiting("PodInitializing", `pulling image "x"`)}), status.Pull{Container: "a", Text: `pulling image "x"`, Since: at.Add(-25 * time.Second)}),
			`web/a: pulling image "x", 20s so far`},
		{"a failed pull", pulled(now(p, v1.PodPending, states{"a": waiting("ErrImagePull", "no such thing")}), status.Pull{Container: "a", Text: why, Next: at.Add(10 * time.Second)}),
			"web/a: " + why + "; next try in 10 s"},
		{"the same later", pulled(now(p, v1.PodPending, states{"a": waiting("ImagePullBackOff", `Back-off pulling image "img:1": ErrImagePull: no such thing`)}), status.Pull{Container: "a", Text: why, Next: at.Add(40 * time.Second)}),
			"web/a: " + why + "; next try in 40 s"},
		{"while it is tried again", pulled(now(p, v1.PodPending, states{"a": waiting("ErrImagePull", `no such thing (pulling image "img:1")`)}), status.Pull{Container: "a", Text: why, Next: at}),
			"web/a: " + why + "; it is tried again now"},
		{"one image of all containers", pulled(now(p, v1.PodPending, states{"a": waiting("ErrImagePull", "no such thing"), "b": waiting("ErrImagePull", "no such thing")}),
			status.Pull{Container: "a", Text: why, Next: at.Add(time.Second)}, status.Pull{Container: "b", Text: why, Next: at.Add(time.Second)}), "web: " + why + "; next try in 1 s"},
		{"a back-off", now(p, v1.PodRunning, states{"a": waiting("CrashLoopBackOff", "back-off 20s restarting failed container=a pod=x")}),
			"web/a: CrashLoopBackOff: back-off 20s restarting failed container=a pod=x"},
		{"the whole pod", now(p, v1.PodPending, states{"a": waiting("FailedMount", "no\ndisk"), "b": waiting("FailedMount", "no\ndisk")}), "web: FailedMount: no disk"},
		{"a network that is not ready", now(p, v1.PodPending, states{"a": waiting("NetworkNotReady", "the runtime has no network for pods yet: no\ncni"), "b": waiting("NetworkNotReady", "the runtime has no network for pods yet: no\ncni")}),
			"web: the runtime has no network for pods yet: no cni"},
		{"a refusal", refused(p, "OutOfcpu", "too much"), "web: OutOfcpu: Pod was rejected: too much"},
		{"a probe", notReady, "web: container a: Readiness probe failed: no"},
		{"how a container ended is said by itself", now(p, v1.PodRunning, states{"a": exited("1", 9), "b": runs}), ""},
		{"what ends the run is not waited for", now(p, v1.PodPending, states{"a": waiting("InvalidImageName", "x")}), ""},
		{"nor is a pod that has ended", now(p, v1.PodFailed, states{"a": waiting("ErrImagePull", "x")}), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, l := range waits(&row.view, names{}, at) {
				got = append(got, l.String())
			}
			if text := strings.Join(got, " | "); text != row.want {
				t.Errorf("got %q, want %q", text, row.want)
			}
		})
	}
}

// What is waited for is what ps says of the pod, in the same words.
func TestWhatIsWaitedForIsWhatPsSays(t *testing.T) {
	at := time.Unix(1000, 0)
	v := now(made("web", "Never", "a"), v1.PodPending, states{"a": waiting("ErrImagePull", "no such thing")})
	status.SetPulls(v.reported, []status.Pull{{Container: "a", Text: "image img:1 cannot be pulled: no such thing", Next: at.Add(10 * time.Second)}})
	said := waits(&v, names{}, at)
	if ps := print.PodWords([]v1.Pod{*v.reported}, at); len(ps) != 1 || len(said) != 1 || ps[0] != "default/web: container a: "+said[0].Text {
		t.Errorf("ps says %q, once %+v", ps, said)
	}
}

func TestProgressSaysThingsOnce(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out}
	pod := made("web", "OnFailure", "c")
	at := time.Unix(0, 0)
	look := func(after time.Duration, s v1.ContainerState, restarts int32, last v1.ContainerState) time.Time {
		v := now(pod, v1.PodRunning, states{"c": s})
		v.status.ContainerStatuses[0].RestartCount, v.status.ContainerStatuses[0].LastTerminationState = restarts, last
		at = at.Add(after)
		return p.look([]view{v}, at)
	}
	none := v1.ContainerState{}
	if again := look(0, waiting("ContainerCreating", "pulling image \"x\""), 0, none); !again.Equal(at.Add(standing)) {
		t.Errorf("looks again at %s", again)
	}
	look(100*time.Millisecond, runs, 0, none) // it was there already: not worth a line
	look(time.Second, exited("1", 9), 0, none)
	look(time.Second, waiting("CrashLoopBackOff", "back-off 10s restarting failed"), 0, exited("1", 9))
	look(time.Second, waiting("CrashLoopBackOff", "back-off 10s restarting failed"), 0, exited("1", 9))
	look(time.Second, runs, 1, exited("1", 9))
	look(time.Second, exited("2", 9), 1, exited("1", 9))
	look(time.Second, exited("2", 9), 1, exited("1", 9))
	pull := func(after, next time.Duration, why string) {
		t.Helper()
		at = at.Add(after)
		v := now(pod, v1.PodRunning, states{"c": waiting("ErrImagePull", why)})
		status.SetPulls(v.reported, []status.Pull{{Container: "c", Text: why, Next: at.Add(next)}})
		p.look([]view{v}, at)
	}
	pull(time.Second, 10*time.Second, "image x cannot be pulled: no route")
	pull(time.Second, 9*time.Second, "image x cannot be pulled: no route")
	pull(9*time.Second, 20*time.Second, "image x cannot be pulled: no route") // another next try is no news
	pull(time.Second, 20*time.Second, "image x cannot be pulled: no such image")
	pull(time.Second, 20*time.Second, "image x cannot be pulled: no such image")
	pull(time.Second, 20*time.Second, "image x cannot be pulled: no route") // it is so again
	pull(time.Second, 19*time.Second, "image x cannot be pulled: no route")
	want := `monopod: web/c: ended with exit code 9
monopod: web/c: crashed 1 time (exit code 9)
monopod: web/c: ended with exit code 9 (attempt 2)
monopod: web/c: image x cannot be pulled: no route; next try in 9 s
monopod: web/c: image x cannot be pulled: no such image; next try in 20 s
monopod: web/c: image x cannot be pulled: no route; next try in 19 s
`
	if out.String() != want {
		t.Errorf("said\n%swant\n%s", &out, want)
	}
}
