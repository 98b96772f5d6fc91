package admission

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/message"
	"monopod/agent/node"
	"monopod/manifests/devicename"
)

// admitResources refuses claims for which the other pods leave too little. own is what the pod's
// name has in the totals. A kubelet ignores extended resources that the node does not know, and
// runs the pod without its device; here such a pod waits, unless an older agent accepted a version
// of it with the same amount, which is spared. Resources that are devices have a check of their own.
func admitResources(c, own, spared *claims, t *totals, f *node.Facts, isDevice func(resource string) bool) *Rejection {
	if most := f.Allocatable.Pods().Value(); t.pods-own.pods >= most {
		return outOf(v1.ResourcePods, "1", fmt.Sprint(t.pods-own.pods), fmt.Sprint(most))
	}
	for _, r := range c.requests {
		if isDevice(string(r.name)) || devicename.Is(string(r.name)) {
			continue
		}
		has, known := f.Allocatable[r.name]
		if before := spared.of(r.name); !known && isExtended(r.name) && before.Cmp(r.amount) >= 0 {
			continue
		}
		taken := t.requests[r.name].DeepCopy()
		taken.Sub(own.of(r.name))
		need := r.amount.DeepCopy()
		need.Add(taken)
		if need.Cmp(has) > 0 {
			return outOf(r.name, amount(r.name, r.amount), amount(r.name, taken), amount(r.name, has)).withRemedy(!known && isExtended(r.name))
		}
	}
	return nil
}

// isExtended reports whether Kubernetes does not define the resource.
func isExtended(name v1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// amount returns a quantity in the form that people use: cores or thousandths of one, bytes with a
// unit, or a number.
func amount(name v1.ResourceName, q resource.Quantity) string {
	if q.CmpInt64(math.MaxInt64/1000) > 0 { // more than these forms can have
		return q.String()
	}
	if isExtended(name) || name == v1.ResourceCPU {
		return resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI).String()
	}
	return resource.NewQuantity(q.Value(), resource.BinarySI).String()
}

func outOf(name v1.ResourceName, requested, used, capacity string) *Rejection {
	return &Rejection{"OutOf" + string(name), message.Of("Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s",
		message.Name(name), message.Name(requested), message.Name(used), message.Name(capacity))}
}

// withRemedy says what helps where nothing provides a resource.
func (r *Rejection) withRemedy(isUnknown bool) *Rejection {
	if isUnknown {
		r.Message = message.Of("%s: devices in the settings does not have it: add it there, or remove it from the manifest", r.Message)
	}
	return r
}
