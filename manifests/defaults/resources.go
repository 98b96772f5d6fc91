package defaults

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// defaultRequests rounds a container's resources up to thousandths and lets a
// limit without a request stand for both.
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
	for name, q := range Aggregate(spec, func(c *v1.Container) v1.ResourceList { return c.Resources.Limits }) {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		if IsHugePages(name) && !limited && !requested {
			set(&r.Limits, name, q)
		}
	}
	for name, q := range Aggregate(spec, func(c *v1.Container) v1.ResourceList { return c.Resources.Requests }) {
		if _, ok := r.Requests[name]; !ok && (name == v1.ResourceCPU || name == v1.ResourceMemory) {
			set(&r.Requests, name, q)
		}
	}
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok && IsPodLevel(name) {
			set(&r.Requests, name, limit)
		}
	}
}

func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// IsPodLevel reports whether a resource may stand in spec.resources.
func IsPodLevel(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || IsHugePages(name)
}

// Aggregate returns the resources of a pod's containers together: the regular
// ones and the sidecars at once, or, if that is more, one init container with the
// sidecars that started before it.
func Aggregate(spec *v1.PodSpec, of func(*v1.Container) v1.ResourceList) v1.ResourceList {
	total, sidecars, peak := v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}
	for i := range spec.Containers {
		sum(total, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if IsSidecar(c) {
			sum(total, of(c))
			sum(sidecars, of(c))
			raise(peak, sidecars)
			continue
		}
		alone := v1.ResourceList{}
		sum(alone, sidecars)
		sum(alone, of(c))
		raise(peak, alone)
	}
	raise(total, peak)
	return total
}

// sum adds to a list.
func sum(to, add v1.ResourceList) {
	for name, q := range add {
		have := to[name].DeepCopy()
		have.Add(q)
		to[name] = have
	}
}

// raise makes no entry of a list smaller than floor's.
func raise(to, floor v1.ResourceList) {
	for name, q := range floor {
		if have, ok := to[name]; !ok || have.Cmp(q) < 0 {
			to[name] = q.DeepCopy()
		}
	}
}

// IsSidecar reports whether an init container runs along with the regular ones.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
