package print

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

func TestNodeWords(t *testing.T) {
	since := metav1.NewTime(clitest.Now.Add(-90 * time.Second))
	for _, row := range []struct {
		name string
		c    v1.NodeCondition
		want []string
	}{
		{"well", v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: "kubelet is posting ready status"}, nil},
		{"no pressure", v1.NodeCondition{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Message: "kubelet has no disk pressure"}, nil},
		{"pressure", v1.NodeCondition{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue, Message: "kubelet has disk pressure"}, []string{"node: has disk pressure, for 90s"}},
		{"no network", v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Message: "container runtime network not ready: NetworkReady=false\nreason:x"},
			[]string{"node: container runtime network not ready: NetworkReady=false reason:x, for 90s"}},
		{"the runtime is down, which is said elsewhere", v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Message: "container runtime is down: x"}, nil},
	} {
		row.c.LastTransitionTime = since
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{row.c}}}
		if got := NodeWords(node, clitest.Now); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestAHeldNodeSaysSo(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{status.AnnHeld: "held: audit\nnow"}}}
	if got, want := NodeWords(node, clitest.Now), []string{"node: held: audit now: no pod is started, updated or removed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
