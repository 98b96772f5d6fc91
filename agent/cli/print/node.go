package print

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/status"
)

// NodeWords are the problems of the node, from its conditions. That the
// runtime does not answer is left out: it is said with more detail elsewhere.
func NodeWords(node *v1.Node, now time.Time) []string {
	var words []string
	if held := node.Annotations[status.AnnHeld]; held != "" {
		words = append(words, OneLine("node: "+held+": no pod is started, updated or removed"))
	}
	for _, c := range node.Status.Conditions {
		bad := v1.ConditionTrue
		if c.Type == v1.NodeReady {
			bad = v1.ConditionFalse
		}
		if c.Status != bad || strings.HasPrefix(c.Message, "container runtime is down") {
			continue
		}
		words = append(words, OneLine(fmt.Sprintf("node: %s, for %s", strings.TrimPrefix(c.Message, "kubelet "),
			duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)))))
	}
	return words
}
