package podstatus

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/pleg"
)

// Up to these values, in millicores, the kernel's values are less exact than the manifest's.
const (
	leastShares = 2
	leastLimit  = 10
)

// ResourcesOf returns a container's resources, from its manifest and, while it runs, from the
// runtime, and its allocation.
func ResourcesOf(c *v1.Container, n *pleg.Container) (*v1.ResourceRequirements, v1.ResourceList) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		return nil, nil
	}
	has := &v1.ResourceRequirements{Limits: maps.Clone(c.Resources.Limits), Requests: maps.Clone(c.Resources.Requests)}
	if l := n.Status.GetResources().GetLinux(); l != nil && n.Running() {
		actual(has, l)
	}
	return has, c.Resources.Requests
}

// actual replaces the manifest's values by the runtime's.
func actual(has *v1.ResourceRequirements, l *rt.LinuxContainerResources) {
	put := func(list v1.ResourceList, name v1.ResourceName, value, least int64, made func(int64) *resource.Quantity) {
		want, ok := list[name]
		if !ok || value <= 0 {
			return
		}
		if got := made(value); name != v1.ResourceCPU || got.MilliValue() > least || want.MilliValue() > least {
			if got.Cmp(want) != 0 {
				list[name] = *got
			}
		}
	}
	put(has.Requests, v1.ResourceCPU, l.CpuShares, leastShares, func(v int64) *resource.Quantity {
		return resource.NewMilliQuantity((v*1000+1023)/1024, resource.DecimalSI)
	})
	put(has.Limits, v1.ResourceCPU, l.CpuQuota, leastLimit, func(v int64) *resource.Quantity {
		return resource.NewMilliQuantity(v*1000/max(l.CpuPeriod, 1), resource.DecimalSI)
	})
	put(has.Limits, v1.ResourceMemory, l.MemoryLimitInBytes, 0, func(v int64) *resource.Quantity {
		return resource.NewQuantity(v, resource.BinarySI)
	})
}
