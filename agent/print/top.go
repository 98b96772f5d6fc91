package print

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

// TopOptions is what of a usage is printed and how.
type TopOptions struct {
	Format
	What       string // pods or node; "": both
	SortBy     string // "", cpu or memory
	Containers bool   // a line for each container instead of each pod

	Trends map[string]status.Trend // of pods, by uid; a terminal with room for them shows the last hour
}

// Check returns the error of the options, in a sentence.
func (o *TopOptions) Check() error {
	if !slices.Contains([]string{"", "cpu", "memory"}, o.SortBy) {
		return fmt.Errorf("--sort-by %q: choose cpu or memory", o.SortBy)
	}
	return nil
}

// Top prints what the node and its pods use. The shares are of what the node gives to pods, if
// that is known.
func Top(out *bytes.Buffer, notes io.Writer, sum *statsapi.Summary, node *v1.Node, o TopOptions) {
	if o.What != "pods" {
		topNode(&sum.Node, node, o).Print(out)
	}
	if o.What == "" && (o.Columns > 0 || len(sum.Pods) > 0) {
		out.WriteByte('\n')
	}
	switch {
	case o.What == "node":
	case len(sum.Pods) == 0 && o.Columns > 0:
		fmt.Fprintln(out, "No pods run.")
	case len(sum.Pods) == 0:
		fmt.Fprintln(notes, "No pods run.")
	default:
		topPods(sum, o).Print(out)
	}
}

// topNode is a line of what the machine uses, with its share of what pods may have.
func topNode(n *statsapi.NodeStats, node *v1.Node, o TopOptions) *Table {
	t := &Table{columns: o.Columns}
	head := []string{"NODE", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}
	row := []string{n.NodeName, cores(n.CPU), share(nano(n.CPU), node.Status.Allocatable.Cpu().MilliValue()*1e6),
		mebibytes(n.Memory), share(workingSet(n.Memory), node.Status.Allocatable.Memory().Value())}
	if o.Output == "wide" {
		head = append(head, "DISK", "DISK(%)", "IMAGES", "TASKS")
		row = append(row, used(n.Fs), full(n.Fs), used(cmp.Or(n.Runtime, &statsapi.RuntimeStats{}).ImageFs), tasks(n.Rlimit))
	}
	t.Line(head...)
	t.Line(row...)
	return t
}

// topLine is a pod or a container.
type topLine struct {
	cells       []string
	cpu, memory *uint64
	hour        []string // of its cpu and memory; of containers none
}

func topPods(sum *statsapi.Summary, o TopOptions) *Table {
	namespaces := o.namespaces(slices.ContainsFunc(sum.Pods, func(p statsapi.PodStats) bool { return p.PodRef.Namespace != v1.NamespaceDefault }))
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
			return cmp.Compare(zero(b.cpu), zero(a.cpu))
		case "memory":
			return cmp.Compare(zero(b.memory), zero(a.memory))
		}
		return 0
	})
	if o.Columns > 0 && !o.Containers && len(o.Trends) > 0 {
		hour := topTable(append(slices.Clip(head), "CPU(1h)", "MEMORY(1h)"), lines, o.Columns, true)
		if hour.isWhole() {
			return hour
		}
	}
	return topTable(head, lines, o.Columns, false)
}

// topTable lays lines out, with the last hour or without.
func topTable(head []string, lines []topLine, columns int, hour bool) *Table {
	t := &Table{columns: columns}
	t.Line(head...)
	for _, l := range lines {
		cells := l.cells
		if hour {
			cells = slices.Concat(cells, l.hour)
		}
		t.Line(cells...)
	}
	return t
}

// podLines returns the line of a pod, or those of its containers.
func podLines(p *statsapi.PodStats, node string, namespaces bool, o TopOptions) []topLine {
	var first []string
	if namespaces {
		first = append(first, p.PodRef.Namespace)
	}
	first = append(first, short(p.PodRef.Name, node))
	if !o.Containers {
		l := topLine{slices.Concat(first, []string{cores(p.CPU), mebibytes(p.Memory)}), nano(p.CPU), workingSet(p.Memory), hourOf(o.Trends[p.PodRef.UID])}
		if o.Output == "wide" {
			l.cells = append(l.cells, used(p.EphemeralStorage), logsOf(p))
			l.cells = append(l.cells, traffic(p.Network)...)
			l.cells = append(l.cells, processes(p.ProcessStats))
		}
		return []topLine{l}
	}
	var lines []topLine
	for i := range p.Containers {
		c := &p.Containers[i]
		l := topLine{slices.Concat(first, []string{c.Name, cores(c.CPU), mebibytes(c.Memory)}), nano(c.CPU), workingSet(c.Memory), nil}
		if o.Output == "wide" {
			l.cells = append(l.cells, used(c.Rootfs), used(c.Logs))
		}
		lines = append(lines, l)
	}
	return lines
}
