package print

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/podspec"
	"monopod/agent/status"
)

// NodeFacts are what DescribeNode prints.
type NodeFacts struct {
	Node  *v1.Node
	Pods  []v1.Pod
	Stats *statsapi.NodeStats // its usage; nil: not known
}

// DescribeNode prints everything that is known of the node, in the style of `kubectl describe
// node`.
func DescribeNode(w *bytes.Buffer, n NodeFacts, f Format) {
	d := &description{w: w, now: f.Now, color: f.Color, columns: f.Columns}
	info := n.Node.Status.NodeInfo
	d.line(0, "Name", n.Node.Name)
	d.lines(0, "Labels", pairs(n.Node.Labels, "="))
	d.lines(0, "Addresses", addressesOf(n.Node))
	d.lineIf(0, "Runtime", strings.Replace(info.ContainerRuntimeVersion, "://", " ", 1))
	d.lineIf(0, "Kernel", info.KernelVersion)
	d.lineIf(0, "System", strings.Trim(info.OSImage+", "+info.Architecture, ", "))
	d.lineIf(0, "Boot", info.BootID)
	d.lineIf(0, "Held", n.Node.Annotations[status.AnnHeld])
	d.nodeConditions(n.Node.Status.Conditions)
	d.nodeResources(n)
	d.nodeDevices(status.DevicesOf(n.Node))
	d.nodeDisks(n.Stats)
	d.nodePods(n.Pods)
}

func addressesOf(n *v1.Node) (all []string) {
	for _, a := range n.Status.Addresses {
		if a.Type != v1.NodeHostName {
			all = append(all, a.Address)
		}
	}
	return all
}

// nodeConditions prints them, the bad ones coloured: pressure, and a node that is not ready.
func (d *description) nodeConditions(all []v1.NodeCondition) {
	if len(all) == 0 {
		return
	}
	d.line(0, "Conditions", "")
	t := &Table{columns: d.columns}
	t.Line("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range all {
		row := plainCells([]string{string(c.Type), string(c.Status), Ago(c.LastTransitionTime.Time, d.now), c.Reason, c.Message})
		if good := c.Type == v1.NodeReady; d.color && good != (c.Status == v1.ConditionTrue) {
			row[1].Color = red
		}
		t.add(row...)
	}
	t.printIndented(d.w)
}

// nodeResources prints the node's capacity, what is reserved of it, what pods may have and what
// the running ones request.
func (d *description) nodeResources(n NodeFacts) {
	d.line(0, "Resources", "")
	t := &Table{columns: d.columns}
	t.Line("RESOURCE", "CAPACITY", "RESERVED", "ALLOCATABLE", "REQUESTED")
	for _, r := range NodeResources(n.Node, n.Pods) {
		t.Line(r.Name, r.Capacity, r.Reserved, r.Allocatable, r.Requested+r.Share)
	}
	t.printIndented(d.w)
}

// NodeResource is a resource of the node in words.
type NodeResource struct {
	Name, Capacity, Reserved, Allocatable, Requested string
	Share                                            string // of Requested in Allocatable, as " (25%)"; "": none
}

// NodeResources returns the node's capacity, what is reserved of it, what pods may have and what
// the running ones request.
func NodeResources(n *v1.Node, pods []v1.Pod) (all []NodeResource) {
	requested, count := v1.ResourceList{}, int64(0)
	for i := range pods {
		if p := &pods[i]; hasRoom(p) {
			podspec.Add(requested, podspec.TotalRequests(p))
			count++
		}
	}
	requested[v1.ResourcePods] = *resource.NewQuantity(count, resource.DecimalSI)
	for _, name := range slices.Sorted(maps.Keys(n.Status.Capacity)) {
		capacity, allocatable, wanted := n.Status.Capacity[name], n.Status.Allocatable[name], requested[name]
		if capacity.IsZero() {
			continue
		}
		reserved := capacity.DeepCopy()
		reserved.Sub(allocatable)
		all = append(all, NodeResource{string(name), amount(name, capacity), amount(name, reserved), amount(name, allocatable), amount(name, wanted), partOf(wanted, allocatable)})
	}
	return all
}

// nodeDevices prints the devices of which the settings make resources, and the containers that have
// them.
func (d *description) nodeDevices(all []status.Device) {
	if len(all) == 0 {
		return
	}
	d.line(0, "Devices", "")
	t := &Table{columns: d.columns}
	t.Line("RESOURCE", "DEVICE", "CONTAINERS")
	for _, one := range all {
		name := one.Device
		if one.Missing {
			name += " (gone)"
		}
		t.Line(one.Resource, name, strings.Join(one.Holders, ", "))
	}
	t.printIndented(d.w)
}

// hasRoom reports whether a pod takes a place on the node: it has not ended, and the owner has not
// stopped it.
func hasRoom(p *v1.Pod) bool {
	return p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed && p.Status.Reason != status.ReasonStopped
}

// amount returns a quantity for people: bytes of memory and disks by their size.
func amount(name v1.ResourceName, q resource.Quantity) string {
	if name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
		return size(uint64(max(q.Value(), 0)))
	}
	return q.String()
}

// partOf returns " (25%)", "" if of is zero.
func partOf(q, of resource.Quantity) string {
	if of.MilliValue() <= 0 || q.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%.0f%%)", 100*q.AsApproximateFloat64()/of.AsApproximateFloat64())
}

// nodeDisks prints how full the disks are on which pressure is measured.
func (d *description) nodeDisks(n *statsapi.NodeStats) {
	disks := NodeDisks(n)
	if len(disks) == 0 {
		return
	}
	d.line(0, "Disks", "")
	t := &Table{columns: d.columns}
	t.Line("DISK", "SIZE", "USED", "FREE", "INODES FREE")
	for _, disk := range disks {
		t.Line(disk.Name, disk.Size, disk.Used, disk.Free, disk.InodesFree)
	}
	t.printIndented(d.w)
}

// NodeDisk is a disk on which pressure is measured, in words.
type NodeDisk struct{ Name, Size, Used, Free, InodesFree string }

// NodeDisks returns how full the disks are; nil: that is not known.
func NodeDisks(n *statsapi.NodeStats) (all []NodeDisk) {
	if n == nil || n.Fs == nil {
		return nil
	}
	runtime := cmp.Or(n.Runtime, &statsapi.RuntimeStats{})
	for _, disk := range []struct {
		name string
		fs   *statsapi.FsStats
	}{{"volumes and logs", n.Fs}, {"images", runtime.ImageFs}, {"containers", runtime.ContainerFs}} {
		if fs := disk.fs; fs != nil && fs.CapacityBytes != nil {
			all = append(all, NodeDisk{disk.name, bytesOf(fs.CapacityBytes), usedOf(fs), bytesOf(fs.AvailableBytes), countOf(fs.InodesFree)})
		}
	}
	return all
}

// usedOf returns what is not available of a disk: UsedBytes of the images' disk are only the
// images' own.
func usedOf(fs *statsapi.FsStats) string {
	if fs.AvailableBytes == nil || *fs.AvailableBytes > *fs.CapacityBytes {
		return ""
	}
	used := *fs.CapacityBytes - *fs.AvailableBytes
	return fmt.Sprintf("%s (%d%%)", size(used), 100*used/max(*fs.CapacityBytes, 1))
}

func bytesOf(n *uint64) string {
	if n == nil {
		return ""
	}
	return size(*n)
}

func countOf(n *uint64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// nodePods prints what each pod that takes a place requests and may have at most.
func (d *description) nodePods(pods []v1.Pod) {
	t := &Table{columns: d.columns}
	t.Line("NAMESPACE", "NAME", "CPU REQUESTS", "CPU LIMITS", "MEMORY REQUESTS", "MEMORY LIMITS")
	for i := range pods {
		p := &pods[i]
		if !hasRoom(p) {
			continue
		}
		requests, limits := podspec.PodResources(p)
		row := []string{p.Namespace, ShortName(p)}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			row = append(row, someOf(name, requests), someOf(name, limits))
		}
		t.Line(row...)
	}
	if len(t.rows) == 1 {
		d.line(0, "Pods", "<none>")
		return
	}
	d.line(0, "Pods", "")
	t.printIndented(d.w)
}

func someOf(name v1.ResourceName, all v1.ResourceList) string {
	q, ok := all[name]
	if !ok || q.IsZero() {
		return ""
	}
	return amount(name, q)
}
