package print

import (
	"slices"
	"testing"

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
		if got := PodWords([]v1.Pod{p}); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}

func TestAHeldPodSaysSoOnce(t *testing.T) {
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{status.AnnHeld: "held: audit"}}}
	if got, want := PodWords([]v1.Pod{p}), []string{"default/web: held: audit"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	status.SetProblems(&p, []string{"update waits: held: audit; locked by its workload: /run/lock"})
	if got, want := PodWords([]v1.Pod{p}), []string{"default/web: update waits: held: audit; locked by its workload: /run/lock"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
