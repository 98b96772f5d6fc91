package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cgroups"
	"monopod/manifests/defaults"
)

// cpuAndMemory returns the resources that sandboxes have, too. Without a cpu request the weight is
// derived from the limit.
func cpuAndMemory(requests, limits v1.ResourceList, n *Host) *rt.LinuxContainerResources {
	request, ok := requests[v1.ResourceCPU]
	if !ok {
		request = limits[v1.ResourceCPU]
	}
	r := &rt.LinuxContainerResources{
		CpuShares:          cgroups.Shares(request.MilliValue()),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if n.CgroupV2 && !n.SingleProcessOOMKill {
		r.Unified = map[string]string{"memory.oom.group": "1"}
	}
	if !n.NoCFSQuota {
		r.CpuPeriod = n.CFSPeriod
		if r.CpuPeriod == 0 {
			r.CpuPeriod = cgroups.DefaultPeriod
		}
		r.CpuQuota = cgroups.Quota(limits.Cpu().MilliValue(), r.CpuPeriod)
	}
	return r
}

// ContainerResources returns the resources of a container of a pod.
func ContainerResources(p *v1.Pod, c *v1.Container, n *Host) *rt.LinuxContainerResources {
	return containerResources(p, c, n)
}

func containerResources(p *v1.Pod, c *v1.Container, n *Host) *rt.LinuxContainerResources {
	limits := effectiveLimits(p, c)
	r := cpuAndMemory(c.Resources.Requests, limits, n)
	if n.ExclusiveCPUs && OwnCPUs(p, c) > 0 {
		r.CpuQuota = unlimited(r.CpuQuota)
	}
	r.OomScoreAdj = oomScoreAdj(p, c, n)
	r.HugepageLimits = hugepageLimits(limits, n)
	if n.SwapController {
		forbidSwap(r, n)
	}
	return r
}

func forbidSwap(r *rt.LinuxContainerResources, n *Host) {
	if !n.CgroupV2 {
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes // the limit of memory and swap together
		return
	}
	if r.Unified == nil {
		r.Unified = map[string]string{}
	}
	r.Unified["memory.swap.max"] = "0"
}

// effectiveLimits returns the container's limits, and the pod's where the container has none.
func effectiveLimits(p *v1.Pod, c *v1.Container) v1.ResourceList {
	out := c.Resources.Limits.DeepCopy()
	if p.Spec.Resources == nil {
		return out
	}
	if out == nil {
		out = v1.ResourceList{}
	}
	for name, q := range p.Spec.Resources.Limits {
		if own := out[name]; own.IsZero() && helpers.IsSupportedPodLevelResource(name) {
			out[name] = q
		}
	}
	return out
}

// hugepageLimits returns one entry for each page size of the machine, 0 unless the
// container may use it.
func hugepageLimits(limits v1.ResourceList, n *Host) []*rt.HugepageLimit {
	bySize := map[string]uint64{}
	for name, q := range limits {
		if size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
			if s, err := resource.ParseQuantity(size); err == nil {
				bySize[PageSize(s.Value())] = uint64(q.Value())
			}
		}
	}
	var out []*rt.HugepageLimit
	for _, s := range n.HugePageSizes {
		out = append(out, &rt.HugepageLimit{PageSize: s, Limit: bySize[s]})
	}
	return out
}

// PageSize names a size of huge pages as cgroups do: 2MB, 1GB.
func PageSize(bytes int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for bytes >= 1024 && bytes%1024 == 0 && i < len(units)-1 {
		bytes /= 1024
		i++
	}
	return fmt.Sprintf("%d%s", bytes, units[i])
}

func sandboxResources(p *v1.Pod, n *Host) *rt.LinuxContainerResources {
	requests, limits := PodResources(p)
	r := cpuAndMemory(requests, limits, n)
	if hasOwnCPUs(p, n) {
		r.CpuQuota = unlimited(r.CpuQuota)
	}
	return r
}

// sandboxOverhead is empty, not nil, for a pod without overhead.
func sandboxOverhead(p *v1.Pod, n *Host) *rt.LinuxContainerResources {
	if len(p.Spec.Overhead) == 0 {
		return &rt.LinuxContainerResources{}
	}
	return cpuAndMemory(p.Spec.Overhead, p.Spec.Overhead, n)
}

// Values of oom_score_adj: of node-critical and Guaranteed pods, the lowest of other pods, and that
// of pods without requests.
const (
	oomGuaranteed = -997
	oomLeast      = 3
	oomMost       = 1000
)

// oomScoreAdj returns the container's oom_score_adj: the more memory a Burstable
// container requests, the lower.
func oomScoreAdj(p *v1.Pod, c *v1.Container, n *Host) int64 {
	qos := QosClass(p)
	switch {
	case p.Spec.PriorityClassName == "system-node-critical", qos == v1.PodQOSGuaranteed:
		return oomGuaranteed
	case qos == v1.PodQOSBestEffort, n.Memory <= 0:
		return oomMost
	}
	share := podMemoryShare(p)
	score := oomMost - oomMost*(c.Resources.Requests.Memory().Value()+share)/n.Memory
	if IsSidecar(p, c) {
		var least int64
		for i := range p.Spec.Containers {
			m := p.Spec.Containers[i].Resources.Requests.Memory().Value()
			if i == 0 {
				least = m
			}
			least = min(least, m)
		}
		score = min(score, oomMost-oomMost*(least+share)/n.Memory)
	}
	return min(max(score, oomLeast), oomMost-1)
}

// podMemoryShare returns each container's share of the memory that the pod requests
// beyond the requests of its containers.
func podMemoryShare(p *v1.Pod) int64 {
	if p.Spec.Resources == nil || p.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	own := helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{})
	extra := p.Spec.Resources.Requests.Memory().Value() - own.Memory().Value()
	return extra / int64(len(p.Spec.Containers)+len(p.Spec.InitContainers))
}

// IsSidecar reports whether c is an init container that keeps running.
func IsSidecar(p *v1.Pod, c *v1.Container) bool {
	return Restartable(c) && IsInit(p, c)
}

// Restartable reports whether an init container keeps running.
func Restartable(c *v1.Container) bool { return defaults.IsSidecar(c) }

// volumeMemory returns the most bytes that a memory volume of the pod may hold: the
// node's memory or, if all of its containers are limited, the pod's limit.
func volumeMemory(p *v1.Pod, n *Host) int64 {
	most := n.Allocatable.Memory().Value()
	if most <= 0 {
		most = n.Memory
	}
	if limit := PodCgroup(p, n).Memory; limit > 0 {
		most = min(most, limit)
	}
	return most
}
