package update

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// look is a moment at which a watch is looked at.
type look struct {
	after time.Duration // since the first
	Health
	want Outcome
	why  string
}

func TestAWatchComesToItsOutcome(t *testing.T) {
	const s = time.Second
	seen, ready, pulls := Health{Seen: true}, Health{Seen: true, Ready: true}, Health{Seen: true, Pulling: true}
	again := Health{Seen: true, Ready: true, Restarts: 1}
	rows := []struct {
		name   string
		limits Limits
		spent  time.Duration
		looks  []look
	}{
		{"never ready", Limits{30 * s, 10 * s}, 0, []look{{0, seen, Watching, ""}, {29 * s, seen, Watching, ""}, {30 * s, seen, RollBack, "it was not ready within 30s"}}},
		{"what was spent before counts", Limits{30 * s, 10 * s}, 20 * s, []look{{0, seen, Watching, ""}, {9 * s, seen, Watching, ""}, {10 * s, seen, RollBack, "it was not ready within 30s"}}},
		{"all was spent, and it is ready", Limits{30 * s, 10 * s}, 30 * s, []look{{0, ready, Watching, ""}, {10 * s, ready, Healthy, ""}}},
		{"the former is not gone", Limits{30 * s, 10 * s}, 0, []look{{0, Health{}, Watching, ""}, {60 * s, Health{}, Watching, ""}, {61 * s, seen, Watching, ""}, {91 * s, seen, RollBack, "it was not ready within 30s"}}},
		{"pulls do not count", Limits{30 * s, 10 * s}, 0, []look{{0, seen, Watching, ""}, {1 * s, pulls, Watching, ""}, {60 * s, pulls, Watching, ""}, {89 * s, seen, Watching, ""}, {90 * s, seen, RollBack, "it was not ready within 30s"}}},
		{"ready in time, and stable", Limits{30 * s, 10 * s}, 0, []look{{0, seen, Watching, ""}, {29 * s, ready, Watching, ""}, {38 * s, ready, Watching, ""}, {39 * s, ready, Healthy, ""}}},
		{"ready, and then not", Limits{30 * s, 10 * s}, 0, []look{{0, ready, Watching, ""}, {9 * s, seen, RollBack, "it was ready, and did not stay so for 10s"}}},
		{"a restart that nothing else shows", Limits{30 * s, 10 * s}, 0, []look{{0, ready, Watching, ""}, {9 * s, again, RollBack, "it was ready, and a container restarted within 10s"}}},
		{"restarts before it is ready", Limits{30 * s, 10 * s}, 0, []look{{0, seen, Watching, ""}, {9 * s, again, Watching, ""}, {19 * s, again, Healthy, ""}}},
		{"success", Limits{30 * s, 10 * s}, 0, []look{{0, Health{Seen: true, Succeeded: true}, Healthy, ""}}},
		{"failure", Limits{30 * s, 10 * s}, 0, []look{{0, Health{Seen: true, Failed: true}, RollBack, "it has failed"}}},
		{"failure once it was ready", Limits{30 * s, 10 * s}, 0, []look{{0, ready, Watching, ""}, {s, Health{Seen: true, Failed: true}, RollBack, "it has failed"}}},
		{"no limit any more", Limits{0, 10 * s}, 30 * s, []look{{0, seen, Healthy, ""}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w, began := Watch{Spent: row.spent}, time.Now()
			for _, at := range row.looks {
				now := began.Add(at.after)
				got, why, again := w.Look(row.limits, at.Health, now)
				if got != at.want || why != at.why {
					t.Errorf("after %s: %v %q, want %v %q", at.after, got, why, at.want, at.why)
				}
				if got == Watching && at.Seen && !again.After(now) {
					t.Errorf("after %s: it is looked at again %s later", at.after, again.Sub(now))
				}
			}
		})
	}
}

func TestTimeWithoutARuntimeIsNotSpent(t *testing.T) {
	w, began := Watch{Spent: 5 * time.Second}, time.Now()
	w.Look(Limits{30 * time.Second, 10 * time.Second}, Health{Seen: true}, began)
	w.Suspend(time.Minute)
	if got := w.SpentAt(began.Add(70 * time.Second)); got != 15*time.Second {
		t.Errorf("spent %s", got)
	}
	w.Look(Limits{30 * time.Second, 10 * time.Second}, Health{Seen: true, Ready: true}, began.Add(70*time.Second))
	if got := w.SpentAt(began.Add(time.Hour)); got != 15*time.Second {
		t.Errorf("spent %s once it was ready", got)
	}
}

func TestTheHealthOfAPodThatEndsIsThatOfItsContainers(t *testing.T) {
	runs, done := v1.ContainerStatus{Ready: true}, v1.ContainerStatus{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}
	bad := v1.ContainerStatus{RestartCount: 2, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}}
	for _, row := range []struct {
		name   string
		policy v1.RestartPolicy
		all    []v1.ContainerStatus
		want   Health
	}{
		{"one is done", v1.RestartPolicyNever, []v1.ContainerStatus{runs, done}, Health{Seen: true, Ready: true}},
		{"one has failed", v1.RestartPolicyOnFailure, []v1.ContainerStatus{runs, bad}, Health{Seen: true, Restarts: 2}},
		{"one that must run is done", v1.RestartPolicyAlways, []v1.ContainerStatus{runs, done}, Health{Seen: true}},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: row.policy}}
		if got := HealthOf(p, &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: row.all}, false); got != row.want {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	if got := HealthOf(&v1.Pod{}, nil, false); got != (Health{Seen: true}) {
		t.Errorf("without a status: %+v", got)
	}
}

func TestTheTroubleOfAPodIsThatOfItsContainers(t *testing.T) {
	ended := func(code int32) *v1.ContainerStateTerminated { return &v1.ContainerStateTerminated{ExitCode: code} }
	st := &v1.PodStatus{Message: "all is lost",
		InitContainerStatuses: []v1.ContainerStatus{{Name: "i", State: v1.ContainerState{Terminated: ended(0)}}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", Ready: true},
			{Name: "b", RestartCount: 1, Ready: true, LastTerminationState: v1.ContainerState{Terminated: ended(0)}},
			{Name: "c", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: v1.ContainerState{Terminated: ended(3)}},
			{Name: "d", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
			{Name: "e", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}}
	if got := Trouble(st); got != "container b ended with exit code 0, container c ended with exit code 3, container d waits: ErrImagePull, container e is not ready" {
		t.Error(got)
	}
	if got := Trouble(&v1.PodStatus{Message: "all is lost"}); got != "all is lost" {
		t.Error(got)
	}
}

func TestAPinnedPodHasTheImagesThatRan(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i", Image: "i:1"}}, Containers: []v1.Container{{Name: "c", Image: "c:1", ImagePullPolicy: v1.PullAlways}}}}
	pinned, all := Pin(p, ImagesOf(&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ImageID: "c@sha256:1"}}}))
	if c := pinned.Spec.Containers[0]; !all || c.Image != "c@sha256:1" || c.ImagePullPolicy != v1.PullIfNotPresent || pinned.Spec.InitContainers[0].Image != "i:1" {
		t.Errorf("%v, %+v", all, pinned.Spec)
	}
	if p.Spec.Containers[0].Image != "c:1" {
		t.Error("the pod itself has changed")
	}
	if _, all := Pin(p, map[string]string{"i": "i@sha256:1"}); all {
		t.Error("the image of c is not known")
	}
}

func TestTheLimitOfAPodWinsOverTheSetting(t *testing.T) {
	for _, row := range []struct {
		annotation    string
		setting, want time.Duration
	}{
		{"", time.Minute, time.Minute}, {"", 0, 0}, {"30s", 0, 30 * time.Second}, {"0s", time.Minute, 0}, {"soon", time.Minute, time.Minute}, {"1ms", 0, 0},
	} {
		p := &v1.Pod{}
		if row.annotation != "" {
			p.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{"monopod.update-health": row.annotation}}
		}
		if got := LimitsOf(p, row.setting, time.Second); got != (Limits{row.want, time.Second}) {
			t.Errorf("%q and %s: %+v", row.annotation, row.setting, got)
		}
	}
}
