package overview

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
	"monopod/agent/metrics"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/manifests"
)

func TestEachPodIsCountedByHowFarItIs(t *testing.T) {
	held, _ := podstatus.WaitingForPods(&manifests.Pod{Pod: &v1.Pod{}}, time.Now(), message.Fixed("waits for db"), nil)
	made := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	unmade := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse}
	volumes := v1.PodSpec{Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}, {VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}}}}
	for _, row := range []struct {
		name    string
		pod     v1.Pod
		desired bool
		want    string
	}{
		{"one that runs", v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning}}, true, "sync desired; active"},
		{"one without a manifest", v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning}}, false, "sync orphan; active"},
		{"one that is being removed", v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Status: v1.PodStatus{Phase: v1.PodRunning}}, false, "terminating orphan; active"},
		{"one that has succeeded", v1.Pod{Spec: volumes, Status: v1.PodStatus{Phase: v1.PodSucceeded, Conditions: []v1.PodCondition{made}}}, true, "terminated desired"},
		{"one that has failed and is being removed", v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Status: v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{unmade}}}, true, "terminated desired"},
		{"one that was refused has no worker", v1.Pod{Spec: volumes, Status: v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfcpu"}}, true, ""},
		{"one that waits for others has none", v1.Pod{Spec: volumes, Status: held}, true, ""},
		{"volumes before the sandbox", v1.Pod{Spec: volumes, Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{unmade}}}, true,
			"sync desired; active; 1 empty-dir; 1 host-path"},
		{"volumes with it", v1.Pod{Spec: volumes, Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{made}}}, true,
			"sync desired; active; 1 actual empty-dir; 1 actual host-path; 1 empty-dir; 1 host-path"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := metrics.State{WorkingPods: map[metrics.Working]int{}, Volumes: map[metrics.Volumes]int{}}
			countPod(&s, &row.pod, row.desired)
			var got, volumes []string
			for w := range s.WorkingPods {
				got = append(got, w.Lifecycle+" "+w.Config)
			}
			if s.ActivePods == 1 {
				got = append(got, "active")
			}
			for v, n := range s.Volumes {
				text := fmt.Sprintf("%d %s", n, v.Plugin)
				if v.Actual {
					text = fmt.Sprintf("%d actual %s", n, v.Plugin)
				}
				volumes = append(volumes, text)
			}
			slices.Sort(volumes)
			if got := strings.Join(append(got, volumes...), "; "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestWarningsAreNoErrors(t *testing.T) {
	var s metrics.State
	countProblems(&s, []status.Problem{{Warning: true}, {}, {Warning: true}})
	if s.ManifestWarnings != 2 || s.ManifestErrors != 1 {
		t.Errorf("%d warnings, %d errors", s.ManifestWarnings, s.ManifestErrors)
	}
}

func TestActivePodsAreOnTheNodeAndHaveNotEnded(t *testing.T) {
	store, err := status.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	waits, _ := podstatus.WaitingForPods(&manifests.Pod{Pod: &v1.Pod{}}, time.Now(), message.Fixed("waits for db"), nil)
	for name, is := range map[string]v1.PodStatus{
		"failed": {Phase: v1.PodFailed}, "pending": {Phase: v1.PodPending}, "refused": {Phase: v1.PodFailed, Reason: "OutOfcpu"},
		"runs": {Phase: v1.PodRunning}, "succeeded": {Phase: v1.PodSucceeded}, "waits": waits,
	} {
		store.SetPod("ns/"+name, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: is})
	}
	var got []string
	for _, p := range Active(store) {
		got = append(got, p.Name)
	}
	if want := []string{"pending", "runs"}; !slices.Equal(got, want) {
		t.Errorf("active are %s", got)
	}
	if len(store.Pods()) != 6 {
		t.Error("the store has lost some")
	}
}
