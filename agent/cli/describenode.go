package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
)

// isNode reports whether the first name is kubectl's word for nodes, and no pod: "node", or
// "node/NAME".
func isNode(names []string, pods []v1.Pod) bool {
	if len(names) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(names[0], "/")
	return slices.Contains([]string{"node", "nodes", "no"}, kind) && !slices.ContainsFunc(pods, func(p v1.Pod) bool {
		return p.Namespace == kind || p.Name == kind || print.ShortName(&p) == kind
	})
}

// nodeMeant returns the name behind that word, "" if there is none.
func nodeMeant(names []string) (string, error) {
	_, name, joined := strings.Cut(names[0], "/")
	rest := names[1:]
	if !joined && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		return "", command.UsageError("there is one node, got %q too", rest[0])
	}
	return name, nil
}

// describeNode prints everything that is known of the node; as json or yaml the v1 Node.
func describeNode(ctx context.Context, w io.Writer, k *client.Known, o DescribeOptions) error {
	name, err := nodeMeant(o.Pods)
	if err != nil {
		return err
	}
	node, err := o.node(ctx, k)
	if err != nil {
		return err
	}
	if name != "" && !strings.EqualFold(name, node.Name) {
		return command.UsageError("there is no node %s: this one is %s", name, node.Name)
	}
	if o.Output != "" {
		return print.As(w, o.Output, node)
	}
	d := print.NodeFacts{Node: node, Pods: k.Pods}
	if !k.Down() {
		d.Stats = o.stats(ctx)
	}
	var out bytes.Buffer
	print.DescribeNode(&out, d, o.Format)
	_, err = w.Write(out.Bytes())
	return err
}

// node returns the agent's report on the node, or its last one.
func (o DescribeOptions) node(ctx context.Context, k *client.Known) (*v1.Node, error) {
	var node v1.Node
	if !k.Down() {
		return &node, client.GetJSON(ctx, o.Socket, "/node", &node)
	}
	data, err := os.ReadFile(filepath.Join(o.Root, "status", "node.json"))
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, &node) != nil {
		return nil, errors.New("what the agent reported of the node last is damaged")
	}
	return &node, nil
}

// stats returns the node's usage; nil if it is not known, as from an agent that just starts.
func (o DescribeOptions) stats(ctx context.Context) *statsapi.NodeStats {
	var sum statsapi.Summary
	body, err := client.GetWithin(ctx, topTimeout, o.Socket, "/stats/summary")
	if err != nil || json.Unmarshal(body, &sum) != nil {
		return nil
	}
	return &sum.Node
}
