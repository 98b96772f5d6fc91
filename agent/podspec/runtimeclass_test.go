package podspec

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestTheHandlerOfARuntimeClass(t *testing.T) {
	for _, row := range []struct {
		name          string
		class         *string
		want, refused string
	}{
		{"none", nil, "", ""},
		{"an empty one", new(""), "", ""},
		{"one that the node has", new("fast"), "runsc", ""},
		{"one that it has not", new("slow"), "", `runtime class "slow" is not configured on this node`},
	} {
		got, err := RuntimeHandler(specPod(func(p *v1.Pod) { p.Spec.RuntimeClassName = row.class }), map[string]string{"fast": "runsc", "": "none"})
		if got != row.want || errText(err) != row.refused {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
}
