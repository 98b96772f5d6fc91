package node

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/podspec"
	"monopod/cgroups"
)

// reservedPids is the resource name of reserved processes and threads.
const reservedPids v1.ResourceName = "pid"

// Reservations are the part of the machine that pods cannot use (KubeletConfiguration:
// systemReserved, kubeReserved, evictionHard).
type Reservations struct {
	// System and Agent are for processes outside of pods: cpu, memory,
	// ephemeral-storage, and processes and threads as pid.
	System, Agent v1.ResourceList
	// Free is memory and ephemeral-storage to keep free in addition. It counts at admission and
	// does not limit the cgroup of all pods.
	Free map[v1.ResourceName]Threshold
	// Unenforced gives the cgroup of all pods the whole machine.
	Unenforced bool
	// Held are the processes outside of pods that are held to what is reserved for them.
	Held []Held
}

// Held are the processes of a cgroup that others made, and the most that they can use
// (KubeletConfiguration: enforceNodeAllocatable, systemReservedCgroup, kubeReservedCgroup).
type Held struct {
	Setting string // that names the cgroup
	Level   string // of enforceNodeAllocatable
	Cgroup  string
	Amounts v1.ResourceList // cpu, memory, and processes and threads as pid; what is not there has no limit
}

// values returns what is written of the cgroup (kubelet: getCgroupConfig). The cpu is a weight.
func (h Held) values() (r cgroups.Resources) {
	if cpu, has := h.Amounts[v1.ResourceCPU]; has {
		r.Shares = cgroups.Shares(cpu.MilliValue())
	}
	pids := h.Amounts[reservedPids]
	r.Memory, r.Pids = h.Amounts.Memory().Value(), pids.Value()
	return r
}

// Threshold is an amount, or a share of the capacity.
type Threshold struct {
	Amount resource.Quantity
	Share  float64 // from 0 to 1; used if it is not 0
}

func (t Threshold) of(capacity resource.Quantity) resource.Quantity {
	if t.Share == 0 {
		return t.Amount
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*t.Share), resource.BinarySI)
}

// fixed returns what is reserved for processes outside of pods.
func (r Reservations) fixed() v1.ResourceList {
	sum := v1.ResourceList{}
	podspec.Add(sum, r.System)
	podspec.Add(sum, r.Agent)
	return sum
}

// Of returns the part of the capacity that pods cannot use (kubelet:
// GetNodeAllocatableReservation).
func (r Reservations) Of(capacity v1.ResourceList) v1.ResourceList {
	sum := r.fixed()
	for name, t := range r.Free {
		podspec.Add(sum, v1.ResourceList{name: t.of(capacity[name])})
	}
	return sum
}

// Check returns an error that names a resource of which more is reserved than exists.
func (r Reservations) Check(capacity v1.ResourceList) error {
	reserved := r.Of(capacity)
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		want := reserved[name]
		if has, known := capacity[name]; known && want.Cmp(has) > 0 {
			return fmt.Errorf("%s of %s is reserved by systemReserved, kubeReserved and evictionHard together, and this machine has %s", want.String(), name, has.String())
		}
	}
	return nil
}

// Limit returns the limits of the cgroup of all pods: n without what is reserved.
func (r Reservations) Limit(n cgroups.Node) cgroups.Node {
	if r.Unenforced {
		return n
	}
	reserved := r.fixed()
	pids := reserved[reservedPids]
	n.CPU = max(n.CPU-reserved.Cpu().MilliValue(), 0)
	n.Memory = max(n.Memory-reserved.Memory().Value(), 0)
	if n.Pids > 0 {
		n.Pids = max(n.Pids-pids.Value(), 1) // 0 would mean no limit
	}
	return n
}
