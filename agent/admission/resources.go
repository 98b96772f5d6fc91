package admission

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/node"
)

// admitResources refuses claims for which not enough is left beside the other pods. own
// is what the pod's name has in the totals. Extended resources that the node does not
// know are ignored, as by the kubelet.
func admitResources(c, own *claims, t *totals, f *node.Facts) *Rejection {
	if most := f.Allocatable.Pods().Value(); t.pods-own.pods >= most {
		return outOf(v1.ResourcePods, 1, t.pods-own.pods, most)
	}
	for _, r := range c.requests {
		has, known := f.Allocatable[r.name]
		if !known && isExtended(r.name) {
			continue
		}
		taken := t.requests[r.name].DeepCopy()
		taken.Sub(own.of(r.name))
		need := r.amount.DeepCopy()
		need.Add(taken)
		if need.Cmp(has) > 0 {
			return outOf(r.name, units(r.name, r.amount), units(r.name, taken), units(r.name, has))
		}
	}
	return nil
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
