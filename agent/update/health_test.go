package update

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	if got := Trouble(st, nil); got != "container b ended with exit code 0, container c ended with exit code 3, container d waits: ErrImagePull, container e is not ready" {
		t.Error(got)
	}
	if got := strings.Join(Troubled(st, nil), " "); got != "b c d e" {
		t.Errorf("in trouble: %s", got)
	}
	if got := Trouble(&v1.PodStatus{Message: "all is lost"}, nil); got != "all is lost" {
		t.Error(got)
	}
}

// What ended before the version began is no trouble of its own.
func TestAnEndOfAFormerVersionIsNoTrouble(t *testing.T) {
	st := &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", RestartCount: 1, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 143, ContainerID: "x://1"}}}}}
	if got := Trouble(st, Ended(st)); got != "container c is not ready" {
		t.Error(got)
	}
	if got := Trouble(st, map[string]string{"c": "x://0"}); got != "container c ended with exit code 143" {
		t.Error(got)
	}
}

func TestWhetherAVersionHasWorked(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	ready := func(is v1.ConditionStatus, since time.Duration, all ...v1.ContainerStatus) v1.PodStatus {
		begin := at(time.Hour)
		return v1.PodStatus{Phase: v1.PodRunning, StartTime: &begin, ContainerStatuses: all,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: is, LastTransitionTime: at(since)}}}
	}
	runs := func(restarts int32, since time.Duration) v1.ContainerStatus {
		return v1.ContainerStatus{RestartCount: restarts, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at(since)}}}
	}
	loops := v1.ContainerStatus{RestartCount: 9, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	for _, row := range []struct {
		name string
		st   v1.PodStatus
		want bool
	}{
		{"nothing was reported of it", v1.PodStatus{}, false},
		{"it is ready since a moment", ready(v1.ConditionTrue, time.Second, runs(0, time.Second)), true},
		{"it is ready since a moment, after a crash", ready(v1.ConditionTrue, time.Second, runs(1, time.Second)), false},
		{"it is ready for some time, after a crash", ready(v1.ConditionTrue, time.Minute, runs(1, time.Minute)), true},
		{"it is ready for just that long, after a crash", ready(v1.ConditionTrue, 10*time.Second, runs(1, 10*time.Second)), true},
		{"it was ready for just that long, and is not", ready(v1.ConditionFalse, time.Hour-10*time.Second, runs(0, time.Hour)), true},
		{"it was ready for less, and is not", ready(v1.ConditionFalse, time.Hour-9*time.Second, runs(0, time.Hour)), false},
		{"it was never ready", ready(v1.ConditionFalse, time.Hour, runs(0, time.Hour)), false},
		{"it was ready, and is not", ready(v1.ConditionFalse, time.Minute, runs(0, time.Hour)), true},
		{"it crashes again and again", ready(v1.ConditionFalse, time.Minute, loops), false},
		{"it has failed", v1.PodStatus{Phase: v1.PodFailed}, false},
		{"it has succeeded", v1.PodStatus{Phase: v1.PodSucceeded}, true},
	} {
		if got := HasWorked(&row.st, now, 10*time.Second); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestAPinnedPodHasTheImagesThatRan(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i", Image: "i:1"}}, Containers: []v1.Container{{Name: "c", Image: "c:1", ImagePullPolicy: v1.PullAlways}}}}
	pinned, all := Pin(p, ImagesOf(&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ImageID: "c@sha256:1"}}}), nil)
	if c := pinned.Spec.Containers[0]; !all || c.Image != "c@sha256:1" || c.ImagePullPolicy != v1.PullIfNotPresent || pinned.Spec.InitContainers[0].Image != "i:1" {
		t.Errorf("%v, %+v", all, pinned.Spec)
	}
	if p.Spec.Containers[0].Image != "c:1" {
		t.Error("the pod itself has changed")
	}
	if _, all := Pin(p, map[string]string{"i": "i@sha256:1"}, nil); all {
		t.Error("the image of c is not known")
	}
}

func TestAPinnedPodHasTheImagesOfItsVolumes(t *testing.T) {
	named := func(name string) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: name + ":1", PullPolicy: v1.PullAlways}}}
	}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "c:1"}}, Volumes: []v1.Volume{named("told"), named("c"), {Name: "dir"}}}}
	mounts := []v1.VolumeMountStatus{
		{Name: "told", VolumeStatus: &v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: "sha256:2"}}},
		{Name: "c"}, // of which the runtime says nothing, and which has the name of a container
	}
	pinned, all := Pin(p, ImagesOf(&v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ImageID: "c@sha256:1", VolumeMounts: mounts}}}), nil)
	told, silent := pinned.Spec.Volumes[0].Image, pinned.Spec.Volumes[1].Image
	if !all || told.Reference != "sha256:2" || told.PullPolicy != v1.PullIfNotPresent || silent.Reference != "c:1" || silent.PullPolicy != v1.PullAlways {
		t.Errorf("%v, %+v, %+v", all, told, silent)
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
