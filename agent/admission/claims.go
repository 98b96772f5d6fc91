package admission

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/podspec"
	"monopod/manifests"
	"monopod/manifests/defaults"
)

// claims are the resources of the node that a pod name takes, computed once for each version.
type claims struct {
	pods     int64
	requests []request // above 0, in the order in which they are checked
	ports    []defaults.HostPort
}

type request struct {
	name   v1.ResourceName
	amount resource.Quantity
}

// claimsOf returns the claims of one version.
func claimsOf(p *v1.Pod) claims {
	requests := podspec.TotalRequests(p)
	c := claims{pods: 1}
	for _, h := range defaults.HostPorts(&p.Spec) {
		c.ports = append(c.ports, h)
	}
	for _, name := range slices.SortedFunc(maps.Keys(requests), byWeight) {
		if amount := requests[name]; amount.Sign() > 0 {
			c.requests = append(c.requests, request{name, amount.DeepCopy()})
		}
	}
	return c
}

// beside returns the claims of two versions of a pod that do not run at the same time: the larger
// request counts for each resource, and the ports of both, as the previous version may still
// listen.
func (c claims) beside(d claims) claims {
	switch {
	case c.pods == 0:
		return d
	case d.pods == 0:
		return c
	}
	most := v1.ResourceList{}
	for _, r := range slices.Concat(c.requests, d.requests) {
		podspec.Raise(most, v1.ResourceList{r.name: r.amount})
	}
	out := claims{pods: 1, ports: slices.Concat(c.ports, d.ports)}
	for _, name := range slices.SortedFunc(maps.Keys(most), byWeight) {
		out.requests = append(out.requests, request{name, most[name]})
	}
	return out
}

// of returns the amount of a resource, 0 if none is claimed.
func (c *claims) of(name v1.ResourceName) resource.Quantity {
	for k := range c.requests {
		if c.requests[k].name == name {
			return c.requests[k].amount
		}
	}
	return resource.Quantity{}
}

// isLess reports whether d lacks something that c has.
func (d *claims) isLess(c *claims) bool {
	return d.pods < c.pods ||
		slices.ContainsFunc(c.requests, func(r request) bool { has := d.of(r.name); return has.Cmp(r.amount) < 0 }) ||
		slices.ContainsFunc(c.ports, func(h defaults.HostPort) bool { return !slices.Contains(d.ports, h) })
}

// byWeight orders resources for the checks: cpu, memory, disk, the rest by name.
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

// totals is the sum of the claims of all pod names.
type totals struct {
	pods     int64
	requests map[v1.ResourceName]resource.Quantity
	ports    map[portNumber][]holder
}

type portNumber struct {
	protocol v1.Protocol
	port     int32
}

// holder is the pod that has a port of an address.
type holder struct {
	ip  string
	key manifests.Key
}

func newTotals() totals {
	return totals{requests: map[v1.ResourceName]resource.Quantity{}, ports: map[portNumber][]holder{}}
}

// replace exchanges the claims of a pod name in the totals.
func (t *totals) replace(key manifests.Key, before, now *claims) {
	t.pods += now.pods - before.pods
	for _, r := range before.requests {
		left := t.requests[r.name]
		left.Sub(r.amount)
		t.requests[r.name] = left
		if left.IsZero() {
			delete(t.requests, r.name)
		}
	}
	for _, r := range now.requests {
		sum := t.requests[r.name]
		sum.Add(r.amount)
		t.requests[r.name] = sum
	}
	for _, h := range before.ports {
		at := portNumber{h.Protocol, h.Port}
		k := slices.Index(t.ports[at], holder{h.IP, key})
		if t.ports[at] = slices.Delete(t.ports[at], k, k+1); len(t.ports[at]) == 0 {
			delete(t.ports, at)
		}
	}
	for _, h := range now.ports {
		at := portNumber{h.Protocol, h.Port}
		t.ports[at] = append(t.ports[at], holder{h.IP, key})
	}
}
