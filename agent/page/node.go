package page

import (
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// nodePage is the page of the node.
type nodePage struct {
	frame
	Facts      facts
	Words      []string
	Conditions []condition
	Resources  []print.NodeResource
	Disks      []print.NodeDisk
	Devices    []status.Device
	Events     []event
	Cut        bool
}

// Node writes the page of the node. used is what it uses, nil if that is not known; events are those
// about it, the latest last.
func Node(w io.Writer, f *Facts, used *statsapi.NodeStats, events []v1.Event) error {
	if f.Node == nil {
		return Missing(w, f, "The node was not looked at yet. It is in a few seconds.")
	}
	g := nodePage{frame: f.frame("node", "Node"), Facts: f.nodeFacts(used), Words: f.nodeWords(), Disks: print.NodeDisks(used), Devices: status.DevicesOf(f.Node)}
	for _, c := range f.Node.Status.Conditions {
		good := v1.ConditionFalse
		if c.Type == v1.NodeReady {
			good = v1.ConditionTrue
		}
		g.Conditions = append(g.Conditions, f.condition(string(c.Type), c.Status, good, c.LastTransitionTime.Time, c.Reason, c.Message))
	}
	var pods []v1.Pod
	for p := range f.Pods {
		pods = append(pods, *p)
	}
	g.Resources = print.NodeResources(f.Node, pods)
	g.Events, g.Cut = f.events(events)
	return execute(w, "node.html", g)
}

func (f *Facts) nodeFacts(used *statsapi.NodeStats) (all facts) {
	info := f.Node.Status.NodeInfo
	if r := f.Runtime; r != nil {
		all.add("Runtime", print.JoinWords(strings.TrimSpace(r.Name+" "+r.Version), map[bool]string{true: "answers", false: "does not answer"}[r.Up]))
		all.code("Its socket", r.Endpoint)
	} else {
		all.add("Runtime", strings.Replace(info.ContainerRuntimeVersion, "://", " ", 1))
	}
	all.add("System", info.OSImage, info.Architecture)
	all.add("Kernel", info.KernelVersion)
	all.add("monopod", f.Version)
	var ips []string
	for _, a := range f.Node.Status.Addresses {
		if a.Type != v1.NodeHostName {
			ips = append(ips, a.Address)
		}
	}
	all.code("Addresses", ips...)
	if used != nil && used.CPU != nil {
		all.add("CPU in use", print.Cores(used.CPU.UsageNanoCores))
	}
	if used != nil && used.Memory != nil {
		all.add("Memory in use", print.Mebibytes(used.Memory.WorkingSetBytes))
	}
	var labels []string
	for k, v := range f.Node.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	all.code("Labels", labels...)
	return all
}
