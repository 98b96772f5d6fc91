package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/node"
	"monopod/agent/podspec"
)

// requestsOf returns the requests of a pod, with its overhead.
func requestsOf(p *v1.Pod) v1.ResourceList {
	requests, _ := podspec.PodResources(p)
	podspec.Add(requests, p.Spec.Overhead)
	return requests
}

// Used returns the sum of the others' requests. Of a pod's versions, the larger
// request counts for each resource.
func Used(others []Allocation) v1.ResourceList {
	sum := v1.ResourceList{}
	for _, other := range others {
		most := v1.ResourceList{}
		for _, version := range other {
			podspec.Raise(most, requestsOf(version))
		}
		podspec.Add(sum, most)
	}
	return sum
}

// admitResources refuses a pod for which not enough is left. Extended resources that
// the node does not know are ignored, as by the kubelet.
func admitResources(p *v1.Pod, others []Allocation, f *node.Facts) *Rejection {
	if most := f.Allocatable.Pods().Value(); int64(len(others)) >= most {
		return outOf(v1.ResourcePods, 1, int64(len(others)), most)
	}
	requests, taken := requestsOf(p), Used(others)
	for _, name := range slices.SortedFunc(maps.Keys(requests), byWeight) {
		request, has := requests[name], f.Allocatable[name]
		if _, known := f.Allocatable[name]; !known && isExtended(name) || request.Sign() <= 0 {
			continue
		}
		need := request.DeepCopy()
		need.Add(taken[name])
		if need.Cmp(has) > 0 {
			return outOf(name, units(name, request), units(name, taken[name]), units(name, has))
		}
	}
	return nil
}

// byWeight orders resources as they are checked: cpu, memory, disk, the rest by name.
func byWeight(a, b v1.ResourceName) int {
	first := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	rank := func(n v1.ResourceName) int {
		if k := slices.Index(first, n); k >= 0 {
			return k
		}
		return len(first)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// isExtended reports whether Kubernetes does not define the resource.
func isExtended(name v1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// units returns thousandths of a core for cpu, else the plain value.
func units(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func outOf(name v1.ResourceName, requested, used, capacity int64) *Rejection {
	return &Rejection{"OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
		name, requested, used, capacity)}
}
