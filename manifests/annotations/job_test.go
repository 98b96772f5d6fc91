package annotations

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestRetriesOfAJobAreReadAsTheyWereSet(t *testing.T) {
	shared := map[string]string{"a": "b"}
	pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever}}
	pod.Annotations = shared
	SetJobRetries(pod, 6)
	if r, ok := JobRetriesOf(pod); !ok || r != (JobRetries{v1.RestartPolicyNever, 6}) || len(shared) != 1 {
		t.Errorf("%+v, %v; the template has %v", r, ok, shared)
	}
	UnsetJobRetries(pod)
	if pod.Spec.RestartPolicy != v1.RestartPolicyNever || fmt.Sprint(pod.Annotations) != "map[a:b]" {
		t.Errorf("undone: %s, %v", pod.Spec.RestartPolicy, pod.Annotations)
	}
	for _, r := range []struct {
		text   string
		policy v1.RestartPolicy
		want   bool
	}{
		{"Never/0", v1.RestartPolicyOnFailure, true}, {"OnFailure/2147483647", v1.RestartPolicyOnFailure, true},
		{"Never/6", v1.RestartPolicyAlways, false}, {"Never/6", v1.RestartPolicyNever, false}, {"Always/6", v1.RestartPolicyOnFailure, false},
		{"Never/-1", v1.RestartPolicyOnFailure, false}, {"Never/2147483648", v1.RestartPolicyOnFailure, false}, {"Never/", v1.RestartPolicyOnFailure, false},
		{"Never", v1.RestartPolicyOnFailure, false}, {"", v1.RestartPolicyOnFailure, false},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: r.policy}}
		pod.Annotations = map[string]string{Job: r.text}
		if _, ok := JobRetriesOf(pod); ok != r.want {
			t.Errorf("%q of a pod of %s: %v", r.text, r.policy, ok)
		}
	}
}
