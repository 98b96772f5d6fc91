package worker

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/instance"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
)

func TestVerdictsAreKeptWithTheCheckpoint(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := checkpoint.KillDecision{Cause: checkpoint.CauseProbe, Reason: "r", Text: "t", Grace: 3 * time.Second}
	w := idleWorker(t, &instance.Disk{Root: r}, map[string]*checkpoint.Checkpoint{})
	c := checkpoint.NewCheckpoint(plantest.Scene{Pod: plantest.Pod(v1.RestartPolicyAlways, "a")}.Facts().Pod, metav1.Now())
	c.KillDecisions = map[string]checkpoint.KillDecision{"gone": {}, "a0": {Reason: "older"}}
	w.pod.known["u"] = c
	s := plan.Facts{Observed: &pleg.Observed{Instances: map[string]*pleg.Instance{"u": plantest.World(plantest.Up("a", 0), plantest.Up("b", 1))}}}
	w.MarkKill(&s, plan.Action{UID: "u", ID: "b1", Reason: want.Reason, Text: want.Text, Grace: want.Grace})
	all, err := r.Checkpoints(nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	if got := all[0].KillDecisions; len(got) != 2 || got["b1"] != want || got["a0"].Reason != "older" {
		t.Errorf("condemned are %+v", got)
	}
}

// What is decided of several containers in one step is all written down.
func TestContainersAreCondemnedTogether(t *testing.T) {
	r, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := &pleg.Observed{Instances: map[string]*pleg.Instance{"u1": {UID: "u1"}}}
	var step []plan.Action
	for k := range 20 {
		id := fmt.Sprintf("id%d", k)
		seen.Instances["u1"].Containers = append(seen.Instances["u1"].Containers, pleg.Container{ID: id})
		step = append(step, plan.Action{Do: plan.DoMarkKill, UID: "u1", ID: id, Name: id, Reason: "it is ill"})
	}
	w := idleWorker(t, &instance.Disk{Root: r}, map[string]*checkpoint.Checkpoint{"u1": {Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}}})
	if err := w.Apply(t.Context(), &plan.Facts{Observed: seen}, [][]plan.Action{step}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.pod.known["u1"].KillDecisions); n != len(step) {
		t.Errorf("%d of %d containers are condemned", n, len(step))
	}
}
