package agent

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
)

func TestProbeCommandIsBounded(t *testing.T) {
	_, err := podspec.ExpandStatic([]string{"sh", strings.Repeat("$(A)", 1000)}, []v1.EnvVar{{Name: "A", Value: strings.Repeat("x", 100<<10)}})
	if got := errorText(err); !strings.HasPrefix(got, "command[1]: longer than 128 KiB") {
		t.Errorf("got %.200s", got)
	}
}

// As the kubelet says it, and others go on.
func TestPodWhoseEnvironmentIsTooLargeWaits(t *testing.T) {
	live(t, func(r *rig) {
		big := strings.Repeat("x", 2<<10)
		r.want("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {big: "+big+"}}\nspec:\n  containers:\n  - name: c\n    image: busybox\n    env:\n"+
			"    - {name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['big']\"}}}\n    - {name: B, value: "+strings.Repeat("$(A)", 100)+"}\n", manifest("b", "img:1"))
		r.waits("default/a-n", "c", "CreateContainerConfigError")
		if w := r.containerStatus("default/a-n", "c").State.Waiting; w == nil || !strings.HasPrefix(w.Message, "env B: longer than 128 KiB") {
			r.Errorf("waiting: %+v", w)
		}
		r.expect("default/b-n/c")
	})
}
