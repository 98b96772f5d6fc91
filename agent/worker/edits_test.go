package worker

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/objects"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/manifests"
)

// An object may change while a worker has no pod, or another version of it, and so is not told.
func TestAChangeIsSeenOfWhichTheWorkerWasNotTold(t *testing.T) {
	set := func(values ...string) *objects.Set {
		var all []*manifests.Object
		for _, value := range values {
			m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Data: map[string]string{"a": value}}
			all = append(all, manifests.NewObject(m, nil, ""))
		}
		return objects.NewSet(all)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "c", EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "app"}}}},
	}}}}
	s := &plan.Facts{Pod: &manifests.Pod{Pod: pod}, Observed: &pleg.Observed{}}
	var e edits
	if e.missed(set("one")) {
		t.Error("a change is missed before the first pod")
	}
	for _, row := range []struct {
		name string
		now  *objects.Set
		want bool
	}{
		{"the first look", set("one"), false},
		{"another set of the same objects", set("one"), false},
		{"another value", set("two"), true},
		{"no object", set(), true},
		{"still none", set(), false},
		{"an object again", set("two"), true},
	} {
		missed := e.missed(row.now)
		if missed != row.want || e.missed(row.now) && !missed {
			t.Errorf("%s: missed %v, want %v", row.name, missed, row.want)
		}
		e.follow(s, row.now, missed)
	}
}
