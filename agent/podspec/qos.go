package podspec

import (
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// PodResources returns the requests and limits of the pod, without overhead: the library would add
// that to the pod's own quantities in place.
func PodResources(p *v1.Pod) (requests, limits v1.ResourceList) {
	o := helpers.PodResourcesOptions{ExcludeOverhead: true}
	return helpers.PodRequests(p, o), helpers.PodLimits(p, o)
}

// Add adds each quantity of b to a. A Quantity shares memory with its copies
// when it is large, hence the deep copy.
func Add(a, b v1.ResourceList) {
	for name, q := range b {
		sum := a[name].DeepCopy()
		sum.Add(q)
		a[name] = sum
	}
}

// Raise makes each quantity of a at least that of b.
func Raise(a, b v1.ResourceList) {
	for name, q := range b {
		if has, ok := a[name]; !ok || has.Cmp(q) < 0 {
			a[name] = q.DeepCopy()
		}
	}
}

// QosClass returns the pod's class: that of its status if set, otherwise computed from cpu and
// memory of the pod as a whole or, without those, its containers.
func QosClass(p *v1.Pod) v1.PodQOSClass {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass
	}
	var asks []v1.ResourceRequirements
	if p.Spec.Resources != nil {
		asks = append(asks, *p.Spec.Resources)
	} else {
		for _, c := range AllContainers(p) {
			asks = append(asks, c.Resources)
		}
	}
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	limited := true
	for _, a := range asks {
		Add(requests, positive(a.Requests))
		Add(limits, positive(a.Limits))
		limited = limited && !a.Limits.Cpu().IsZero() && !a.Limits.Memory().IsZero()
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return v1.PodQOSBestEffort
	case limited && EqualAmounts(requests, limits):
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}

// positive returns the resources that determine the class: cpu and memory above zero.
func positive(in v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if q := in[name]; q.Sign() > 0 {
			out[name] = q
		}
	}
	return out
}

// EqualAmounts reports whether both lists have the same resources and amounts.
func EqualAmounts(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// resourceValue returns a limit or request of a container in units of the divisor, rounded up. A
// missing limit is replaced by the pod's, then the node's. c is the container of the variable; nil:
// none, so the selector must name one.
func resourceValue(p *v1.Pod, c *v1.Container, s *v1.ResourceFieldSelector, n *Host) (string, error) {
	if c == nil || s.ContainerName != "" && s.ContainerName != c.Name {
		if c = containerNamed(p, s.ContainerName); c == nil {
			return "", fmt.Errorf("container %s not found", s.ContainerName)
		}
	}
	kind, name, _ := strings.Cut(s.Resource, ".")
	var q resource.Quantity
	switch kind {
	case "requests":
		q = c.Resources.Requests[v1.ResourceName(name)]
	case "limits":
		q = limitOrNode(p, c, v1.ResourceName(name), n)
	default:
		return "", fmt.Errorf("unsupported container resource: %s", s.Resource)
	}
	value, divisor := q.Value(), s.Divisor.Value()
	if name == string(v1.ResourceCPU) {
		value, divisor = q.MilliValue(), s.Divisor.MilliValue()
		if divisor == 0 {
			divisor = 1000
		}
	}
	divisor = max(divisor, 1)
	return fmt.Sprint((value + divisor - 1) / divisor), nil
}

func limitOrNode(p *v1.Pod, c *v1.Container, name v1.ResourceName, n *Host) resource.Quantity {
	q := effectiveLimits(p, c)[name]
	if q.IsZero() && (name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage) {
		return n.Allocatable[name]
	}
	return q
}

func containerNamed(p *v1.Pod, name string) *v1.Container {
	for _, c := range AllContainers(p) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
