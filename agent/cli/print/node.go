package print

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// NodeHeldWords say what a hold of the node means; none if it is "".
func NodeHeldWords(held string) []string {
	if held == "" {
		return nil
	}
	return []string{OneLine("node: " + held + ": no pod is started, updated or removed")}
}

// NodeWords are the problems of the node, from its conditions. That the
// runtime does not answer is left out: it is said with more detail elsewhere.
func NodeWords(node *v1.Node, now time.Time) []string {
	words := NodeHeldWords(node.Annotations[status.AnnHeld])
	for _, c := range node.Status.Conditions {
		bad := v1.ConditionTrue
		if c.Type == v1.NodeReady {
			bad = v1.ConditionFalse
		}
		if c.Status != bad || strings.HasPrefix(c.Message, "container runtime is down") {
			continue
		}
		words = append(words, OneLine(fmt.Sprintf("node: %s, for %s", strings.TrimPrefix(c.Message, "kubelet "),
			Ago(c.LastTransitionTime.Time, now))))
	}
	return words
}
