package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/urfave/cli/v2"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/status"
)

// topTimeout is longer than for others: rates take two looks, and the agent may query the runtime.
const topTimeout = 15 * time.Second

// TopOptions is what Top prints and how.
type TopOptions struct {
	print.TopOptions
	Socket string        // of the agent
	Choice client.Choice // of pods
	Notes  io.Writer     // for the message that there is nothing to print; nil: none
}

// Top prints the present usage of the node and its pods.
func Top(ctx context.Context, w io.Writer, o TopOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	text, err := top(ctx, o)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func top(ctx context.Context, o TopOptions) ([]byte, error) {
	path := "/stats/summary?only_cpu_and_memory=true"
	if o.Output != "" {
		path = "/stats/summary"
	}
	body, err := client.GetWithin(ctx, topTimeout, o.Socket, path)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if o.Output == "json" || o.Output == "yaml" {
		return topRaw(&out, body, o)
	}
	var sum statsapi.Summary
	var node v1.Node
	if err := client.Decode(body, &sum, o.Socket, path); err != nil {
		return nil, err
	}
	chosen, err := o.chosen(sum.Pods, sum.Node.NodeName)
	if err != nil {
		return nil, err
	}
	sum.Pods = pick(sum.Pods, chosen)
	if o.What != "pods" {
		_ = client.GetJSON(ctx, o.Socket, "/node", &node) // an agent that just starts has none yet: no shares then
	}
	if o.Columns > 0 && o.What != "node" && !o.Containers {
		o.Trends = trends(ctx, o.Socket)
	}
	print.Top(&out, cmp.Or(o.Notes, io.Discard), &sum, &node, o.TopOptions)
	return out.Bytes(), nil
}

// trends returns what pods used in the last hour, by uid; none from an agent that does not know.
func trends(ctx context.Context, socket string) map[string]status.Trend {
	var all []status.Trend
	if client.GetJSON(ctx, socket, "/stats/hour", &all) != nil {
		return nil
	}
	byUID := map[string]status.Trend{}
	for _, t := range all {
		byUID[t.UID] = t
	}
	return byUID
}

// chosen returns for each pod whether it is chosen.
func (o TopOptions) chosen(all []statsapi.PodStats, node string) ([]bool, error) {
	pods, chosen := make([]v1.Pod, len(all)), make([]bool, len(all))
	for k := range all {
		pods[k].Namespace, pods[k].Name, pods[k].Spec.NodeName = all[k].PodRef.Namespace, all[k].PodRef.Name, node
	}
	meant, err := o.Choice.Of(pods)
	for k := range pods {
		chosen[k] = slices.ContainsFunc(meant, func(p v1.Pod) bool { return p.Namespace == pods[k].Namespace && p.Name == pods[k].Name })
	}
	return chosen, err
}

// pick returns the chosen ones of all.
func pick[T any](all []T, chosen []bool) []T {
	out := []T{}
	for k, v := range all {
		if chosen[k] {
			out = append(out, v)
		}
	}
	return out
}

// topRaw prints the endpoint's answer, or the requested part of it.
func topRaw(out *bytes.Buffer, body []byte, o TopOptions) ([]byte, error) {
	var sum statsapi.Summary
	var parts struct {
		Node json.RawMessage   `json:"node"`
		Pods []json.RawMessage `json:"pods"`
	}
	const path = "/stats/summary"
	if err := cmp.Or(client.Decode(body, &sum, o.Socket, path), client.Decode(body, &parts, o.Socket, path)); err != nil {
		return nil, err
	}
	v := any(json.RawMessage(body))
	if o.Choice.Any() {
		chosen, err := o.chosen(sum.Pods, sum.Node.NodeName)
		if err != nil {
			return nil, err
		}
		parts.Pods = pick(parts.Pods, chosen)
		v = parts
	}
	switch o.What {
	case "node":
		v = parts.Node
	case "pods":
		v = parts.Pods
	}
	err := print.As(out, o.Output, v)
	return out.Bytes(), err
}

func topCommand() *cli.Command {
	var o TopOptions
	return &cli.Command{
		Name: "top", ArgsUsage: "[node|pods] [POD ...]", Usage: "show what the node and its pods use",
		Description: `
CPU is what was used of late, in thousandths of a core; memory is what cannot
easily be freed. The node's shares are of what pods may have. A terminal with room
for it shows each pod's last hour, five minutes a bar.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "containers", Aliases: []string{"c"}, Destination: &o.Containers,
				Usage: "a line for each container"},
			command.Choice(&cli.StringFlag{Name: "sort-by", Destination: &o.SortBy, Usage: "the largest first, by `WHAT`"}, "cpu", "memory"),
			command.OutputFlag(&o.Output, "wide", "json", "yaml"),
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "refresh every two seconds; needs a terminal"},
			command.NamespaceFlag(&o.Choice.Namespace),
			command.AllNamespacesFlag(&o.AllNamespaces),
			command.SocketFlag(&o.Socket),
		},
		Action: func(c *cli.Context) error {
			if err := o.subject(c.Args().Slice()); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return command.UsageError("%v", err)
			}
			o.Format, o.Notes = o.Format.On(c.App.Writer, os.Getenv), c.App.ErrWriter
			if !c.Bool("watch") {
				return Top(c.Context, c.App.Writer, o)
			}
			rows, err := screenOf(c, o.Output, "")
			if err != nil {
				return err
			}
			return TopWatch(c.Context, c.App.Writer, rows, o)
		},
	}
}

// subject reads the arguments: the node, or pods, or some of them by name.
func (o *TopOptions) subject(args []string) error {
	if len(args) == 0 {
		return nil
	}
	subject := map[string]string{"pod": "pods", "pods": "pods", "node": "node", "nodes": "node"}[args[0]]
	o.What = cmp.Or(subject, "pods")
	if subject != "" {
		args = args[1:]
	}
	if o.What == "node" && len(args) > 0 {
		return command.UsageError("there is one node: leave out %q", args[0])
	}
	o.Choice.Names = args
	return nil
}
