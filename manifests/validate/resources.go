package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	helpers "k8s.io/component-helpers/resource"

	"monopod/manifests/decode"
	"monopod/manifests/defaults"
	"monopod/manifests/devicename"
)

// resources checks a container's resources.
func (c *checker) resources(p *field.Path, r *v1.ResourceRequirements) {
	for _, list := range []struct {
		name string
		list v1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range names(list.list) {
			limit, limited := r.Limits[name]
			if amount := list.list[name]; list.name == "requests" && limited && amount.Cmp(limit) == 0 {
				continue // most likely its default
			}
			q := p.Child(list.name).Key(string(name))
			c.resourceName(q, name)
			c.amount(q, name, list.list[name])
			if list.name == "limits" && name == v1.ResourceMemory {
				c.memoryLimit(q, list.list[name])
			}
		}
	}
	for _, name := range names(r.Requests) {
		if c.read(p.Child("limits").Key(string(name))) {
			c.requestWithin(p.Child("requests").Key(string(name)), name, r)
		}
	}
	for _, name := range slices.Concat(names(r.Limits), names(r.Requests)) {
		if defaults.IsHugePages(name) && !hasAny(r, v1.ResourceCPU, v1.ResourceMemory) {
			c.forbid(true, p, "HugePages require cpu or memory")
			break
		}
	}
	c.forbid(len(r.Claims) > 0, p.Child("claims"), "static pods may not reference resourceclaims")
}

func names(list v1.ResourceList) []v1.ResourceName { return slices.Sorted(maps.Keys(list)) }

func hasAny(r *v1.ResourceRequirements, names ...v1.ResourceName) bool {
	return slices.ContainsFunc(names, func(name v1.ResourceName) bool {
		_, limited := r.Limits[name]
		_, requested := r.Requests[name]
		return limited || requested
	})
}

// isComputeResource reports whether Kubernetes itself knows a resource.
func isComputeResource(name v1.ResourceName) bool {
	return helpers.IsSupportedPodLevelResource(name) || name == v1.ResourceEphemeralStorage
}

func (c *checker) resourceName(p *field.Path, name v1.ResourceName) {
	if isComputeResource(name) {
		return
	}
	if devicename.Is(string(name)) {
		c.deviceName(p, name)
		return
	}
	if !strings.Contains(string(name), "/") {
		c.add(field.Invalid(p, string(name), "must be a standard resource type (cpu, memory, ephemeral-storage, hugepages-<size>) or fully qualified, like example.com/dongle"))
		return
	}
	c.invalid(p, string(name), validation.IsQualifiedName(string(name)))
	if strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) {
		c.add(field.Invalid(p, string(name), "must not begin with "+v1.DefaultResourceRequestsPrefix))
	}
}

// deviceName checks the name of a resource that names a device.
func (c *checker) deviceName(p *field.Path, name v1.ResourceName) {
	_, err := devicename.Parse(string(name))
	if err != nil {
		c.add(field.Invalid(p, string(name), err.Error()))
	}
}

// amount checks one quantity on its own.
func (c *checker) amount(p *field.Path, name v1.ResourceName, q resource.Quantity) {
	if q.Sign() < 0 {
		c.add(field.Invalid(p, q.String(), "must be greater than or equal to 0"))
	}
	if !isComputeResource(name) && q.MilliValue()%1000 != 0 {
		c.add(field.Invalid(p, q.String(), "must be an integer"))
	}
	if size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
		page, err := decode.ParseQuantity(size)
		if err != nil || page.Sign() <= 0 || page.Value() == 0 || q.Value()%page.Value() != 0 {
			c.addQuoting(field.Invalid(p, q.String(), "must be a multiple of the page size "+size))
		}
	}
}

// requestWithin checks a request against its limit. A resource that cannot be overcommitted must
// have a limit equal to its request, but for a device that is requested by its name, as in podman
// kube play.
func (c *checker) requestWithin(p *field.Path, name v1.ResourceName, r *v1.ResourceRequirements) {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	exact := defaults.IsHugePages(name) || !isComputeResource(name)
	switch {
	case !limited && devicename.Is(string(name)):
	case !limited && exact:
		c.add(field.Required(p, "Limit must be set for non overcommitable resources"))
	case limited && exact && request.Cmp(limit) != 0:
		c.addQuoting(field.Invalid(p, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
	case limited && request.Cmp(limit) > 0:
		c.addQuoting(field.Invalid(p, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
	}
}

// podResources checks the pod-level resources against those of the containers.
func (c *checker) podResources(p *field.Path) {
	r := c.spec.Resources
	if r == nil {
		return
	}
	q := p.Child("resources")
	c.resources(q, r)
	for _, name := range names(r.Limits) {
		c.podLevel(q.Child("limits").Key(string(name)), name)
	}
	sums := helpers.AggregateContainerRequests(&v1.Pod{Spec: *c.spec}, helpers.PodResourcesOptions{})
	for _, name := range names(r.Requests) {
		at := q.Child("requests").Key(string(name))
		c.podLevel(at, name)
		request, sum := r.Requests[name], sums[name]
		if request.Cmp(sum) < 0 && c.readContainers("resources") {
			c.addQuoting(field.Invalid(at, request.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", sum.String())))
		}
	}
	for i := range c.spec.InitContainers {
		c.limitsWithin(p.Child("initContainers").Index(i), &c.spec.InitContainers[i], r.Limits)
	}
	for i := range c.spec.Containers {
		c.limitsWithin(p.Child("containers").Index(i), &c.spec.Containers[i], r.Limits)
	}
}

func (c *checker) podLevel(p *field.Path, name v1.ResourceName) {
	if !helpers.IsSupportedPodLevelResource(name) {
		oneOf(c, p, name, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceHugePagesPrefix+"<size>")
	}
}

func (c *checker) limitsWithin(p *field.Path, ct *v1.Container, limits v1.ResourceList) {
	for _, name := range names(ct.Resources.Limits) {
		limit, podLimit := ct.Resources.Limits[name], limits[name]
		known := c.read(field.NewPath("spec", "resources", "limits").Key(string(name)))
		if _, ok := limits[name]; ok && known && limit.Cmp(podLimit) > 0 {
			c.addQuoting(field.Invalid(p.Child("resources", "limits").Key(string(name)), limit.String(),
				fmt.Sprintf("must be less than or equal to pod limits of %s", podLimit.String())))
		}
	}
}
