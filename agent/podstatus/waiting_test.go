package podstatus_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

func TestAPodThatWaitsForOthersSaysSinceWhen(t *testing.T) {
	p := &manifests.Pod{Pod: pod(v1.RestartPolicyAlways, "a")}
	for name, row := range map[string]struct {
		last   *v1.PodStatus
		starts bool
	}{
		"it was never reported":            {nil, false},
		"it was reported before its start": {&v1.PodStatus{}, false},
		"it ran before":                    {&v1.PodStatus{StartTime: &metav1.Time{Time: noon}}, true},
	} {
		st, _ := podstatus.WaitingForPods(p, noon, message.Fixed("waits for db"), row.last)
		if since, waits := podstatus.WaitsForPodsSince(&st); !waits || !since.Equal(noon) || !podstatus.WaitsForPods(&st) {
			t.Errorf("%s: waits %v since %s", name, waits, since)
		}
		if (st.StartTime != nil) != row.starts {
			t.Errorf("%s: its start: %v", name, st.StartTime)
		}
		for _, c := range st.Conditions {
			if c.Reason != podstatus.ReasonWaitingForPods && c.LastTransitionTime.Time.Equal(noon) {
				t.Errorf("%s: the condition %s is as old as the wait", name, c.Type)
			}
		}
	}
	ready := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: metav1.Time{Time: time.Unix(1, 0)}}}}
	if podstatus.WaitsForPods(&ready) {
		t.Error("a pod that is not ready waits for others")
	}
}
