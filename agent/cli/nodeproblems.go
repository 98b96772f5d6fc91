package cli

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
)

// nodeWords returns the problems of the node, from its conditions; none while the
// agent has no report on it.
func nodeWords(ctx context.Context, o Options) []string {
	var node v1.Node
	if client.GetJSON(ctx, o.Socket, "/node", &node) != nil {
		return nil
	}
	return conditionWords(&node, o)
}

// conditionWords leaves out that the runtime does not answer, which is said with
// more detail elsewhere.
func conditionWords(node *v1.Node, o Options) []string {
	var words []string
	for _, c := range node.Status.Conditions {
		bad := v1.ConditionTrue
		if c.Type == v1.NodeReady {
			bad = v1.ConditionFalse
		}
		if c.Status != bad || strings.HasPrefix(c.Message, "container runtime is down") {
			continue
		}
		words = append(words, print.OneLine(fmt.Sprintf("node: %s, for %s", strings.TrimPrefix(c.Message, "kubelet "),
			duration.HumanDuration(o.Now.Sub(c.LastTransitionTime.Time)))))
	}
	return words
}
