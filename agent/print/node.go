package print

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// NodeHeldWords returns what a hold of the node means; none if held is "".
func NodeHeldWords(held string) []string {
	if held == "" {
		return nil
	}
	return []string{OneLine("node: " + held + ": no pod is started, updated or removed")}
}

// NodeWords returns the problems of the node, from its conditions. That it is not ready while the
// runtime does not answer is left out: that is printed with more detail elsewhere.
func NodeWords(node *v1.Node, runtimeUp bool, now time.Time) []string {
	words := NodeHeldWords(node.Annotations[status.AnnHeld])
	for _, c := range node.Status.Conditions {
		bad := v1.ConditionTrue
		if c.Type == v1.NodeReady {
			bad = v1.ConditionFalse
		}
		if c.Status != bad || c.Type == v1.NodeReady && !runtimeUp {
			continue
		}
		words = append(words, OneLine(fmt.Sprintf("node, for %s: %s", Ago(c.LastTransitionTime.Time, now), c.Message)))
	}
	return words
}
