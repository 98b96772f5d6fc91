package once

import (
	"maps"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestWhatIsWaitedFor(t *testing.T) {
	p := made("web", "Never", "a", "b")
	notReady := now(p, v1.PodRunning, states{"a": runs, "b": runs})
	notReady.status.Conditions = []v1.PodCondition{{Type: v1.ContainersReady, Status: v1.ConditionFalse,
		Message: "containers with unready status: [a]: Readiness probe failed: no"}}
	setUp := now(p, v1.PodPending, states{"a": waiting("ContainerCreating", ""), "b": waiting("ContainerCreating", "")})
	setUp.status.Conditions = []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse, Reason: "FailedMount", Message: "no such\ndirectory"}}
	for _, row := range []struct {
		name string
		view view
		want map[string]string
	}{
		{"a set-up that fails", setUp, map[string]string{"web": "FailedMount: no such directory"}},
		{"nothing is known", view{pod: p}, nil},
		{"all is on its way", now(p, v1.PodPending, states{"a": waiting("ContainerCreating", ""), "b": waiting("PodInitializing", "")}), nil},
		{"a pull", now(p, v1.PodPending, states{"a": waiting("ContainerCreating", `pulling image "x", 20s so far`)}), map[string]string{"web/a": `pulling image "x"`}},
		{"a failed pull", now(p, v1.PodPending, states{"a": waiting("ErrImagePull", `no such thing (pulling image "img:1")`)}),
			map[string]string{"web/a": `image "img:1" cannot be pulled and is tried again: no such thing`}},
		{"the same later", now(p, v1.PodPending, states{"a": waiting("ImagePullBackOff", `Back-off pulling image "img:1": ErrImagePull: no such thing`)}),
			map[string]string{"web/a": `image "img:1" cannot be pulled and is tried again: no such thing`}},
		{"a back-off", now(p, v1.PodRunning, states{"a": waiting("CrashLoopBackOff", "back-off 20s restarting failed container=a pod=x")}),
			map[string]string{"web/a": "is started again within 20s"}},
		{"the whole pod", now(p, v1.PodPending, states{"a": waiting("FailedMount", "no\ndisk"), "b": waiting("FailedMount", "no\ndisk")}),
			map[string]string{"web": "FailedMount: no disk"}},
		{"a network that is not ready", now(p, v1.PodPending, states{"a": waiting("NetworkNotReady", "network is not ready: no\ncni"), "b": waiting("NetworkNotReady", "network is not ready: no\ncni")}),
			map[string]string{"web": "waits for the network: no cni"}},
		{"a refusal", refused(p, "OutOfcpu", "too much"), map[string]string{"web": "there is no place for it: OutOfcpu: too much"}},
		{"a probe", notReady, map[string]string{"web": "is not ready: Readiness probe failed: no"}},
		{"what ends the run is not waited for", now(p, v1.PodPending, states{"a": waiting("InvalidImageName", "x")}), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := waits(&row.view, names{}); !maps.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
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
	want := `monopod: web/c: ended with exit code 9
monopod: web/c: is started again within 10s
monopod: web/c: ended with exit code 9 (attempt 2)
`
	if out.String() != want {
		t.Errorf("said\n%swant\n%s", &out, want)
	}
}
