package print

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

// crashing is the pod mqtt of a container that ended with this code and message.
func crashing(code, restarts int32, message string) v1.Pod {
	s := waiting("broker", "CrashLoopBackOff", "back-off 1m20s restarting failed container=broker pod=mqtt_default(6f1c)")
	s.RestartCount, s.LastTerminationState.Terminated = restarts, &v1.ContainerStateTerminated{ExitCode: code, Message: message}
	return v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mqtt"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "broker"}}}, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{s}}}
}

func TestACrashIsSaidByWhatIsKnownOfIt(t *testing.T) {
	const crashed = "default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option -- 'k')"
	usage := crashing(1, 3, "usage: nc\nnc: invalid option -- 'k'\n\n")
	started := crashing(1, 3, "nc: invalid option -- 'k'")
	status.SetStarts(&started, map[string]time.Time{"broker": noon.Add(64 * time.Second)})
	other := crashing(0, 0, "")
	other.Namespace, other.Spec.Containers = "home", append(other.Spec.Containers, v1.Container{Name: "b"})
	beside := crashing(1, 1, "a\n  b")
	beside.Spec.InitContainers = []v1.Container{{Name: "first"}}
	for _, row := range []struct {
		what  string
		pod   v1.Pod
		after time.Duration
		want  string // in 500 columns
		at80  string
	}{
		{"by an agent that does not say when it starts", usage, 0, crashed + ": monopod logs mqtt -p",
			"default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option\n  -- 'k'): monopod logs mqtt -p"},
		{"until the next start", started, 0, crashed + "; next start in 64 s: monopod logs mqtt -p",
			"default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option\n  -- 'k'); next start in 64 s: monopod logs mqtt -p"},
		{"when it is time", started, 64 * time.Second, crashed + "; it starts again now: monopod logs mqtt -p",
			"default/mqtt: container broker: crashed 4 times (exit code 1: nc: invalid option\n  -- 'k'); it starts again now: monopod logs mqtt -p"},
		{"beside an init container, with an indented last line", beside, 0, "default/mqtt: container broker: crashed 2 times (exit code 1: b): monopod logs mqtt broker -p",
			"default/mqtt: container broker: crashed 2 times (exit code 1: b): monopod logs\n  mqtt broker -p"},
		{"one of several containers, which ended well", other, 0, "home/mqtt: container broker: ended 1 time (exit code 0): monopod logs home/mqtt broker -p",
			"home/mqtt: container broker: ended 1 time (exit code 0): monopod logs home/mqtt\n  broker -p"},
	} {
		got := PodWords([]v1.Pod{row.pod}, noon.Add(row.after))
		if len(got) != 1 || wrapped(got[0], 140, 2) != row.want || wrapped(got[0], 80, 2) != row.at80 {
			t.Errorf("%s:\n got  %q\n want %q", row.what, got, row.want)
		}
		if w := WordsOf(&row.pod, noon); len(w) != 1 || w[0].Reason != "CrashLoopBackOff" {
			t.Errorf("%s: the reason is %+v", row.what, w)
		}
	}
}

func TestARuntimeWithoutNetworkIsOneSentence(t *testing.T) {
	const told = "the runtime has no network for pods yet: Network plugin returns error: cni plugin not initialized"
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
		waiting("a", "NetworkNotReady", told), waiting("b", "NetworkNotReady", told)}}}
	const at80 = "default/web: the runtime has no network for pods yet: Network plugin returns\n  error: cni plugin not initialized"
	got := PodWords([]v1.Pod{p}, noon)
	if len(got) != 1 || wrapped(got[0], 80, 2) != at80 || wrapped(got[0], 140, 2) != "default/web: "+told {
		t.Errorf("%q, want %q", got, at80)
	}
}
