package print

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

func waiting(name, reason, message string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func ended(name string, code int32) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
}

func running(name string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
}

func not(kind v1.PodConditionType, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: kind, Status: v1.ConditionFalse, Reason: reason, Message: message}
}

func TestOneCauseOfAPodIsOneLine(t *testing.T) {
	creating := []v1.ContainerStatus{waiting("a", "ContainerCreating", ""), waiting("b", "ContainerCreating", "")}
	for _, row := range []struct {
		what     string
		status   v1.PodStatus
		leaves   bool
		problems []string
		want     []string
	}{
		{what: "all well", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("a")},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, Message: "x"}}}},
		{what: "on its way", status: v1.PodStatus{ContainerStatuses: creating,
			Conditions: []v1.PodCondition{not(v1.PodReady, "ContainersNotReady", "containers with unready status: [a b]")}}},
		{what: "held", status: v1.PodStatus{
			ContainerStatuses: []v1.ContainerStatus{waiting("a", "WaitingForPods", "waits for db"), waiting("b", "WaitingForPods", "waits for db")},
			Conditions:        []v1.PodCondition{not(v1.PodReadyToStartContainers, "WaitingForPods", "waits for db")}},
			want: []string{"default/web: WaitingForPods: waits for db"}},
		{what: "two causes", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting("a", "ErrImagePull", "no a"), waiting("b", "ErrImagePull", "no b")}},
			want: []string{"default/web: container a: ErrImagePull: no a", "default/web: container b: ErrImagePull: no b"}},
		{what: "some of the containers for one cause", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
			waiting("a", "CreateContainerConfigError", "no claim"), running("b"), waiting("c", "CreateContainerConfigError", "no claim"), waiting("d", "ErrImagePull", "no d")}},
			want: []string{"default/web: container a, container c: CreateContainerConfigError: no claim", "default/web: container d: ErrImagePull: no d"}},
		{what: "the update waits for what the container does", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting("a", "CreateContainerConfigError", "the claim is missing")}},
			problems: []string{"update waits: held: audit; the claim is missing; no cpu"},
			want:     []string{"default/web: container a: CreateContainerConfigError: the claim is missing; update waits: held: audit; the same; no cpu"}},
		{what: "the update waits for what the whole pod does", status: v1.PodStatus{ContainerStatuses: creating,
			Conditions: []v1.PodCondition{not(v1.PodReadyToStartContainers, "FailedMount", "the claim is missing")}},
			problems: []string{"update waits: the claim is missing"}, want: []string{"default/web: FailedMount: the claim is missing; update waits: the same"}},
		{what: "a mount fails", status: v1.PodStatus{ContainerStatuses: creating,
			Conditions: []v1.PodCondition{not(v1.PodReadyToStartContainers, "FailedMount", "no such directory")}},
			want: []string{"default/web: FailedMount: no such directory"}},
		{what: "not ready", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("a"), running("b")},
			Conditions: []v1.PodCondition{not(v1.PodReady, "ContainersNotReady", "containers with unready status: [a b]: a: broken; b: broken")}},
			problems: []string{"container a: Readiness probe failed: broken", "container b: Readiness probe failed: broken"},
			want:     []string{"default/web: container a: Readiness probe failed: broken", "default/web: container b: Readiness probe failed: broken"}},
		{what: "a gate", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("a")},
			Conditions: []v1.PodCondition{not(v1.PodReady, "ReadinessGatesNotReady", "no gate")}},
			want: []string{"default/web: ReadinessGatesNotReady: no gate"}},
		{what: "ended badly", status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{ended("a", 3)}},
			want: []string{"default/web: container a: Error: exit code 3"}},
		{what: "asked to go", leaves: true, status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{ended("a", 137)}},
			problems: []string{"a new version waits"}, want: []string{"default/web: a new version waits"}},
		{what: "hostile", status: v1.PodStatus{Reason: "R", Message: "a\x1b[31m\nb"}, want: []string{"default/web: R: a [31m b"}},
	} {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Status: row.status}
		if row.leaves {
			p.DeletionTimestamp = &metav1.Time{}
		}
		status.SetProblems(&p, row.problems)
		if got := PodWords([]v1.Pod{p}, noon); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}

// noon is when these tests take place.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// The moment of the next try is the agent's, the words are of the time at which they are read.
func TestTheNextTryOfAnImageIsNamed(t *testing.T) {
	const why = "image docker.example/x:1 cannot be pulled: connection refused"
	pulling := func(names ...string) v1.PodStatus {
		s := v1.PodStatus{}
		for _, name := range names {
			s.ContainerStatuses = append(s.ContainerStatuses, waiting(name, "ImagePullBackOff", `Back-off pulling image "docker.example/x:1": ErrImagePull: connection refused`))
		}
		return s
	}
	of := func(container string) []status.Pull {
		return []status.Pull{{Container: container, Text: why, Next: noon.Add(40 * time.Second)}}
	}
	for _, row := range []struct {
		what     string
		status   v1.PodStatus
		problems []string
		pulls    []status.Pull
		after    time.Duration
		want     string
	}{
		{"a container", pulling("broker"), nil, of("broker"), 0, "container broker: " + why + "; next try in 40 s"},
		{"a part of a second is one", pulling("broker"), nil, of("broker"), 38500 * time.Millisecond, "container broker: " + why + "; next try in 2 s"},
		{"minutes before", pulling("broker"), nil, of("broker"), -200 * time.Second, "container broker: " + why + "; next try in 4 min"},
		{"when it is time", pulling("broker"), nil, of("broker"), 40 * time.Second, "container broker: " + why + "; it is tried again now"},
		{"all containers for one image", pulling("a", "b"), nil, append(of("a"), of("b")...), 0, why + "; next try in 40 s"},
		{"an older agent", pulling("broker"), nil, nil, 0, `container broker: ImagePullBackOff: Back-off pulling image "docker.example/x:1": ErrImagePull: connection refused`},
		{"the next version, beside the one that runs", v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{running("broker")}},
			[]string{"update waits: held: audit; " + why + "; no cpu is left"}, of(""), 0, "update waits: held: audit; " + why + "; next try in 40 s; no cpu is left"},
		{"a pod that is to start again", v1.PodStatus{Reason: "UpdateWaits", Message: why}, nil, of(""), 0, "UpdateWaits: " + why + "; next try in 40 s"},
	} {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mqtt", Name: "web"}, Status: row.status}
		status.SetProblems(&p, row.problems)
		status.SetPulls(&p, row.pulls)
		if got, want := PodWords([]v1.Pod{p}, noon.Add(row.after)), []string{"mqtt/web: " + row.want}; !slices.Equal(got, want) {
			t.Errorf("%s:\n got  %q\n want %q", row.what, got, want)
		}
	}
}

func TestAHeldPodSaysSoOnce(t *testing.T) {
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{status.AnnHeld: "held: audit"}}}
	if got, want := PodWords([]v1.Pod{p}, noon), []string{"default/web: held: audit"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p.Status.Reason, p.Status.Message = status.ReasonStopped, "stopped by request"
	if got, want := PodWords([]v1.Pod{p}, noon), []string{"default/web: Stopped: stopped by request; held: audit"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p.Status = v1.PodStatus{}
	status.SetProblems(&p, []string{"update waits: held: audit; locked by its workload: /run/lock"})
	if got, want := PodWords([]v1.Pod{p}, noon), []string{"default/web: update waits: held: audit; locked by its workload: /run/lock"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A claim that is missing keeps the container and the update from starting: that is one line.
func TestAMissingClaimIsSaidOnce(t *testing.T) {
	const missing = "the directory /var/lib/monopod/volumes/default_data of the PersistentVolumeClaim default/data is missing, and was there before: mount its disk, or use an empty directory with: monopod volume make default/data"
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting("a", "CreateContainerConfigError", missing)}}}
	status.SetProblems(&p, []string{"update waits: " + missing})
	at := map[int]string{
		80: `default/web: container a: CreateContainerConfigError: the directory
  /var/lib/monopod/volumes/default_data of the PersistentVolumeClaim
  default/data is missing, and was there before: mount its disk, or use an empty
  directory with: monopod volume make default/data; update waits: the same`,
		140: `default/web: container a: CreateContainerConfigError: the directory /var/lib/monopod/volumes/default_data of the PersistentVolumeClaim
  default/data is missing, and was there before: mount its disk, or use an empty directory with: monopod volume make default/data; update
  waits: the same`,
	}
	got := PodWords([]v1.Pod{p}, noon)
	for columns, want := range at {
		if len(got) != 1 || wrapped(got[0], columns, 2) != want {
			t.Errorf("at %d: %d lines:\n%s", columns, len(got), wrapped(got[0], columns, 2))
		}
	}
}
