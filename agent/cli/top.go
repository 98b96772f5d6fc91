package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
)

// topTimeout is more than others get: rates take two looks, and the runtime may
// be asked.
const topTimeout = 15 * time.Second

// TopOptions says what Top prints and how.
type TopOptions struct {
	Socket     string // of the agent
	Output     string // "", wide, json or yaml
	What       string // pods or node; "" is both
	SortBy     string // "", cpu or memory
	Containers bool   // a line for each container instead of each pod
}

// check returns the problem of the options, in a sentence.
func (o *TopOptions) check() error {
	for _, row := range []struct {
		what, value string
		choices     []string
	}{
		{"output", o.Output, []string{"", "wide", "json", "yaml"}},
		{"--sort-by", o.SortBy, []string{"", "cpu", "memory"}},
		{"subject", o.What, []string{"", "pods", "node"}},
	} {
		if !slices.Contains(row.choices, row.value) {
			return fmt.Errorf("%s %q is not one of %s", row.what, row.value, strings.Join(row.choices, ", ")[2:])
		}
	}
	return nil
}

// Top prints what the node and its pods use now.
func Top(ctx context.Context, w io.Writer, o TopOptions) error {
	if err := o.check(); err != nil {
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
	if err := json.Unmarshal(body, &sum); err != nil {
		return nil, fmt.Errorf("GET %s from %s: %w", path, o.Socket, err)
	}
	if o.What != "pods" {
		_ = client.GetJSON(ctx, o.Socket, "/node", &node) // an agent that just starts has none yet: no shares then
		topNode(&sum.Node, &node, o).Print(&out)
	}
	if o.What == "" {
		out.WriteByte('\n')
	}
	switch {
	case o.What == "node":
	case len(sum.Pods) == 0:
		fmt.Fprintln(&out, "No pods run.")
	default:
		topPods(&sum, o).Print(&out)
	}
	return out.Bytes(), nil
}

// topRaw prints what the endpoint gave, or the part that was asked for.
func topRaw(out *bytes.Buffer, body []byte, o TopOptions) ([]byte, error) {
	var parts struct{ Node, Pods json.RawMessage }
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, fmt.Errorf("what %s answers: %w", o.Socket, err)
	}
	v := json.RawMessage(body)
	switch o.What {
	case "node":
		v = parts.Node
	case "pods":
		v = parts.Pods
	}
	err := printAs(out, o.Output, v)
	return out.Bytes(), err
}

// topNode is a line of what the machine uses, with what that is of what pods may
// have.
func topNode(n *statsapi.NodeStats, node *v1.Node, o TopOptions) *print.Table {
	t := &print.Table{}
	head := []string{"NODE", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}
	row := []string{n.NodeName, print.Cores(n.CPU), print.Share(print.Nano(n.CPU), node.Status.Allocatable.Cpu().MilliValue()*1e6),
		print.Mebibytes(n.Memory), print.Share(print.WorkingSet(n.Memory), node.Status.Allocatable.Memory().Value())}
	if o.Output == "wide" {
		head = append(head, "DISK", "DISK(%)", "IMAGES", "TASKS")
		row = append(row, print.Used(n.Fs), print.Full(n.Fs), print.Used(cmp.Or(n.Runtime, &statsapi.RuntimeStats{}).ImageFs), print.Tasks(n.Rlimit))
	}
	t.Add(print.PlainCells(head)...)
	t.Add(print.PlainCells(row)...)
	return t
}

// topLine is a pod or a container.
type topLine struct {
	cells       []string
	cpu, memory *uint64
}

func topPods(sum *statsapi.Summary, o TopOptions) *print.Table {
	namespaces := o.Output == "wide" || slices.ContainsFunc(sum.Pods, func(p statsapi.PodStats) bool { return p.PodRef.Namespace != v1.NamespaceDefault })
	head := []string{"POD", "CPU(cores)", "MEMORY(bytes)"}
	if o.Containers {
		head = slices.Insert(head, 1, "CONTAINER")
	}
	if namespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if o.Output == "wide" {
		head = append(head, "DISK", "LOGS")
		if !o.Containers {
			head = append(head, "RECEIVED", "SENT", "PROCESSES")
		}
	}
	var lines []topLine
	for i := range sum.Pods {
		lines = append(lines, podLines(&sum.Pods[i], sum.Node.NodeName, namespaces, o)...)
	}
	slices.SortStableFunc(lines, func(a, b topLine) int {
		switch o.SortBy {
		case "cpu":
			return cmp.Compare(print.Zero(b.cpu), print.Zero(a.cpu))
		case "memory":
			return cmp.Compare(print.Zero(b.memory), print.Zero(a.memory))
		}
		return 0
	})
	t := &print.Table{}
	t.Add(print.PlainCells(head)...)
	for _, l := range lines {
		t.Add(print.PlainCells(l.cells)...)
	}
	return t
}

// podLines returns the line of a pod, or those of its containers.
func podLines(p *statsapi.PodStats, node string, namespaces bool, o TopOptions) []topLine {
	var first []string
	if namespaces {
		first = append(first, p.PodRef.Namespace)
	}
	first = append(first, strings.TrimSuffix(p.PodRef.Name, "-"+strings.ToLower(node)))
	if !o.Containers {
		l := topLine{slices.Concat(first, []string{print.Cores(p.CPU), print.Mebibytes(p.Memory)}), print.Nano(p.CPU), print.WorkingSet(p.Memory)}
		if o.Output == "wide" {
			l.cells = append(l.cells, print.Used(p.EphemeralStorage), print.Logs(p))
			l.cells = append(l.cells, print.Traffic(p.Network)...)
			l.cells = append(l.cells, print.Processes(p.ProcessStats))
		}
		return []topLine{l}
	}
	var lines []topLine
	for i := range p.Containers {
		c := &p.Containers[i]
		l := topLine{slices.Concat(first, []string{c.Name, print.Cores(c.CPU), print.Mebibytes(c.Memory)}), print.Nano(c.CPU), print.WorkingSet(c.Memory)}
		if o.Output == "wide" {
			l.cells = append(l.cells, print.Used(c.Rootfs), print.Used(c.Logs))
		}
		lines = append(lines, l)
	}
	return lines
}

func topCommand() *command {
	var o TopOptions
	var watch bool
	return &command{
		name: "top", args: "[pods|node]", usage: "show what the node and its pods use",
		about: "CPU is what was used of late, in thousandths of a core; memory is what cannot easily be freed.\n" +
			"The node's shares are of what pods may have.",
		flags: func(f *pflag.FlagSet) {
			f.BoolVarP(&o.Containers, "containers", "c", false, "a line for each container")
			f.StringVar(&o.SortBy, "sort-by", "", "the largest first, by `WHAT`: cpu or memory")
			outputFlag(f, &o.Output, "wide, json or yaml")
			f.BoolVarP(&watch, "watch", "w", false, "refresh every two seconds; needs a terminal")
			socketFlag(f, &o.Socket)
		},
		run: func(ctx context.Context, c *Call) error {
			switch {
			case len(c.args) > 1:
				return exit(exitUsage, "top takes one argument, got %q as well", c.args[1])
			case len(c.args) == 1:
				subject, ok := map[string]string{"pod": "pods", "pods": "pods", "node": "node", "nodes": "node"}[c.args[0]]
				if !ok {
					return exit(exitUsage, "top of %q: choose pods or node", c.args[0])
				}
				o.What = subject
			}
			if !watch {
				return Top(ctx, c.Out, o)
			}
			fd := int(c.Out.Fd())
			if !term.IsTerminal(fd) || o.Output == "json" || o.Output == "yaml" {
				return exit(exitUsage, "--watch needs a terminal and prints no json or yaml; leave it out")
			}
			return TopWatch(ctx, c.Out, func() int {
				_, rows, _ := term.GetSize(fd)
				return rows
			}, o)
		},
	}
}
