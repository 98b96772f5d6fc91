package podspec

import (
	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"monopod/cgroups"
)

// CgroupClass returns the level that the pod's cgroup is under.
func CgroupClass(p *v1.Pod) cgroups.Class {
	switch QosClass(p) {
	case v1.PodQOSGuaranteed:
		return cgroups.Guaranteed
	case v1.PodQOSBurstable:
		return cgroups.Burstable
	}
	return cgroups.BestEffort
}

// TotalRequests returns the sum of the pod's requests, with its overhead.
func TotalRequests(p *v1.Pod) v1.ResourceList {
	requests, _ := PodResources(p)
	Add(requests, p.Spec.Overhead)
	return requests
}

// PodCgroup returns the values of the pod's cgroup. A Burstable pod is limited only if all of its
// containers are.
func PodCgroup(p *v1.Pod, n *Host) cgroups.Resources {
	requests, limits := TotalRequests(p), cgroupLimits(p)
	r := cgroups.Resources{Shares: cgroups.Shares(requests.Cpu().MilliValue()), Period: n.CFSPeriod, Pids: n.PodPids, HugePages: map[string]int64{}}
	for _, h := range hugepageLimits(requests, n) {
		r.HugePages[h.PageSize] = int64(h.Limit)
	}
	class := CgroupClass(p)
	if class == cgroups.BestEffort {
		r.Shares = cgroups.Shares(0)
		return r
	}
	if r.Period == 0 {
		r.Period = cgroups.DefaultPeriod
	}
	if class == cgroups.Guaranteed || limitDeclared(p, v1.ResourceCPU) {
		r.Quota = cgroups.Quota(limits.Cpu().MilliValue(), r.Period)
	}
	if r.Quota != 0 && (n.NoCFSQuota || hasOwnCPUs(p, n)) {
		r.Quota = -1
	}
	if class == cgroups.Guaranteed || limitDeclared(p, v1.ResourceMemory) {
		r.Memory = limits.Memory().Value()
	}
	return r
}

// cgroupLimits returns the sum of the pod's limits, with its overhead where there is a limit.
func cgroupLimits(p *v1.Pod) v1.ResourceList {
	_, limits := PodResources(p)
	more := v1.ResourceList{}
	for name, q := range p.Spec.Overhead {
		if has := limits[name]; !has.IsZero() {
			more[name] = q
		}
	}
	Add(limits, more)
	return limits
}

// limitDeclared reports whether the pod as a whole, or all that runs in it at any time, is limited.
// Sidecars before an init container lend it their limit.
func limitDeclared(p *v1.Pod, name v1.ResourceName) bool {
	if r := p.Spec.Resources; r != nil {
		if q := r.Limits[name]; !q.IsZero() {
			return true
		}
	}
	declared := true
	helpers.AggregateContainerLimits(p, helpers.PodResourcesOptions{ContainerFn: func(limits v1.ResourceList, _ helpers.ContainerType) {
		q := limits[name]
		declared = declared && !q.IsZero()
	}})
	return declared
}
