package print

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

// seen is when the node is looked at.
var seen = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestNodeWords(t *testing.T) {
	since := metav1.NewTime(seen.Add(-90 * time.Second))
	const full = "disk pressure: 12% of 40 GB is left on the disk at /var/lib/containerd, less than the 15% of evictionHard imagefs.available: make room there"
	noNetwork := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Message: "container runtime network not ready: NetworkReady=false\nreason:x"}
	for _, row := range []struct {
		name        string
		c           v1.NodeCondition
		runtimeDown bool
		at80, at140 string // "": nothing is said
	}{
		{"well", v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: "kubelet is posting ready status"}, false, "", ""},
		{"no pressure", v1.NodeCondition{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Message: "kubelet has no disk pressure"}, false, "", ""},
		{"pressure", v1.NodeCondition{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue, Message: full}, false,
			"node, for 90s: disk pressure: 12% of 40 GB is left on the disk at\n  /var/lib/containerd, less than the 15% of evictionHard imagefs.available: make\n  room there",
			"node, for 90s: disk pressure: 12% of 40 GB is left on the disk at /var/lib/containerd, less than the 15% of evictionHard imagefs.available:\n  make room there"},
		{"pressure while the runtime is down", v1.NodeCondition{Type: v1.NodePIDPressure, Status: v1.ConditionTrue, Message: "process pressure: x"}, true,
			"node, for 90s: process pressure: x", "node, for 90s: process pressure: x"},
		{"no network", noNetwork, false, "node, for 90s: container runtime network not ready: NetworkReady=false reason:x",
			"node, for 90s: container runtime network not ready: NetworkReady=false reason:x"},
		{"the runtime is down, which is said elsewhere", noNetwork, true, "", ""},
	} {
		row.c.LastTransitionTime = since
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{row.c}}}
		got := strings.Join(NodeWords(node, !row.runtimeDown, seen), "\n")
		if wrapped(got, 80, 2) != row.at80 || wrapped(got, 140, 2) != row.at140 {
			t.Errorf("%s:\n%s\n%s", row.name, wrapped(got, 80, 2), wrapped(got, 140, 2))
		}
	}
}

func TestAHeldNodeSaysSo(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{status.AnnHeld: "held: audit\nnow"}}}
	if got, want := NodeWords(node, true, seen), []string{"node: held: audit now: no pod is started, updated or removed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
