package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// OwnCPUs returns how many CPUs of its own a container requests: a whole number in a Guaranteed
// pod. 0: it shares those of others.
func OwnCPUs(p *v1.Pod, c *v1.Container) int {
	cpu := c.Resources.Requests.Cpu()
	if cpu.Value()*1000 != cpu.MilliValue() || p.Spec.Resources != nil || QosClass(p) != v1.PodQOSGuaranteed {
		return 0
	}
	return int(cpu.Value())
}

// hasOwnCPUs reports whether a container of the pod has CPUs of its own.
func hasOwnCPUs(p *v1.Pod, n *Host) bool {
	return n.ExclusiveCPUs && slices.ContainsFunc(AllContainers(p), func(c *v1.Container) bool { return OwnCPUs(p, c) > 0 })
}

// unlimited returns the quota of what has CPUs of its own, and so needs no limit; 0, which is none,
// stays.
func unlimited(quota int64) int64 {
	if quota == 0 {
		return 0
	}
	return -1
}
