package defaults

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// defaultRequests rounds a container's resources up to thousandths and sets a missing request to
// the limit.
func defaultRequests(r *v1.ResourceRequirements) {
	roundUp(r.Limits)
	roundUp(r.Requests)
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			set(&r.Requests, name, limit)
		}
	}
}

func roundUp(list v1.ResourceList) {
	for name, q := range list {
		roundQuantity(&q)
		list[name] = q
	}
}

func roundQuantity(q *resource.Quantity) { q.RoundUp(resource.Milli) }

func set(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q.DeepCopy()
}

// defaultPodResources completes pod-level resources that have limits: a missing
// request is the sum of the containers' requests, else the limit.
func defaultPodResources(spec *v1.PodSpec) {
	r := spec.Resources
	if r == nil {
		return
	}
	roundUp(r.Limits)
	roundUp(r.Requests)
	if len(r.Limits) == 0 {
		return
	}
	for name, q := range helpers.AggregateContainerLimits(&v1.Pod{Spec: *spec}, helpers.PodResourcesOptions{}) {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		if IsHugePages(name) && !limited && !requested {
			set(&r.Limits, name, q)
		}
	}
	for name, q := range helpers.AggregateContainerRequests(&v1.Pod{Spec: *spec}, helpers.PodResourcesOptions{}) {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			set(&r.Requests, name, q)
		}
	}
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok && helpers.IsSupportedPodLevelResource(name) {
			set(&r.Requests, name, limit)
		}
	}
}

func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
