package update

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests/poduid"
)

// rule compares a field that no one kind is right for. p.kind is that of what holds it.
func (c *comparison) rule(p place, a, b reflect.Value) {
	switch p.name {
	case "ObjectMeta.UID":
		c.uids(p)
	case "ObjectMeta.Annotations":
		c.annotations(p)
	case "PodSpec.InitContainers":
		p.least = Replace
		c.containers(p, c.old.Spec.InitContainers, c.new.Spec.InitContainers)
	case "PodSpec.Containers":
		c.containers(p, c.old.Spec.Containers, c.new.Spec.Containers)
	case "PodSpec.Resources":
		c.podResources(p, c.old.Spec.Resources, c.new.Spec.Resources)
	case "Container.Env":
		c.env(p.of(Restart), a.Interface().([]v1.EnvVar), b.Interface().([]v1.EnvVar))
	case "Container.Ports":
		c.ports(p, a.Interface().([]v1.ContainerPort), b.Interface().([]v1.ContainerPort))
	case "Container.Resources":
		c.containerResources(p, a.Interface().(v1.ResourceRequirements), b.Interface().(v1.ResourceRequirements))
	case "SecurityContext.Privileged":
		p = p.of(Restart)
		if privileged(c.old) != privileged(c.new) { // the sandbox has the most of its containers
			p = p.of(Replace)
		}
		c.values(p, a, b)
	default:
		c.values(p.of(Replace), a, b)
	}
}

func privileged(p *v1.Pod) bool {
	return slices.ContainsFunc(podspec.AllContainers(p), func(c *v1.Container) bool {
		s := c.SecurityContext
		return s != nil && s.Privileged != nil && *s.Privileged
	})
}

// uids compares the uids if a manifest says one: computed ones follow from the rest.
func (c *comparison) uids(p place) {
	said := func(uid types.UID) bool { return !poduid.IsComputed(uid) }
	if a, b := c.old.UID, c.new.UID; a != b && (said(a) || said(b)) {
		c.add(p.of(Replace), quote(string(a))+" -> "+quote(string(b)))
	}
}

// ours are the annotations that the agent sets.
var ours = []string{poduid.AnnotationHash, "kubernetes.io/config.source", "kubernetes.io/config.seen",
	"kubernetes.io/config.mirror", status.AnnProblems, status.AnnHeld}

// atCreation are the beginnings of annotations that runtimes and their network plugins
// read when they create a sandbox or a container: a running one does not follow them.
var atCreation = []string{
	"kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth", "k8s.v1.cni.cncf.io/", "cni.projectcalico.org/",
	"io.kubernetes.cri", "io.containerd.", "io.katacontainers.", "cdi.k8s.io/", "blockio.resources.beta.kubernetes.io/",
	"rdt.resources.beta.kubernetes.io/", "cpu.resources.beta.kubernetes.io/",
	"memory.resources.beta.kubernetes.io/", "dev.gvisor.", "run.oci.",
}

// annotations compares the annotations by who reads them.
func (c *comparison) annotations(p place) {
	a, b := c.old.Annotations, c.new.Annotations
	keys := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for key := range m {
			keys[key] = !slices.Contains(ours, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		x, was := a[key]
		y, is := b[key]
		if !keys[key] || x == y && was == is {
			continue
		}
		one := c.annotation(p.in("[%s]", key), key)
		c.add(one, change(one, given(x, was), given(y, is)))
	}
}

// annotation is the place of one.
func (c *comparison) annotation(p place, key string) place {
	p.source, p.mute = "metadata.annotations['"+key+"']", key == v1.LastAppliedConfigAnnotation
	name, profile := strings.CutPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
	switch {
	case slices.ContainsFunc(atCreation, func(prefix string) bool { return strings.HasPrefix(key, prefix) }),
		strings.Contains(key, ".crio.io"), strings.Contains(key, ".cri-o.io"), profile && podspec.IsInitName(c.new, name):
		return p.of(Replace)
	case profile && slices.ContainsFunc(c.new.Spec.Containers, func(c v1.Container) bool { return c.Name == name }):
		p.container = name
		return p.of(Restart)
	}
	return p.of(Live)
}

// containers compares two lists of containers, whose names and order are the pod's.
func (c *comparison) containers(p place, old, new []v1.Container) {
	was, is := containerNames(old), containerNames(new)
	for _, name := range was {
		if !slices.Contains(is, name) {
			c.add(p.in("[%s]", name).of(Replace), removed)
		}
	}
	for i, name := range is {
		one := p.in("[%s]", name)
		k := slices.Index(was, name)
		if k < 0 {
			c.add(one.of(Replace), added)
			continue
		}
		if p.least < Replace {
			one.container = name
		}
		c.structs(one.of(Restart), reflect.ValueOf(&old[k]).Elem(), reflect.ValueOf(&new[i]).Elem())
	}
	if moved(was, is) {
		c.add(p.of(Replace), "in another order")
	}
}

func containerNames(all []v1.Container) []string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// env compares variables by their names, and does not tell their values.
func (c *comparison) env(p place, old, new []v1.EnvVar) {
	was, is := variables(old), variables(new)
	before := len(c.fields)
	for _, name := range is.names {
		switch {
		case was.of[name] == nil:
			c.add(p.in("[%s]", name), added)
		case !equality.Semantic.DeepEqual(was.of[name], is.of[name]):
			c.add(p.in("[%s]", name), changed)
		}
	}
	for _, name := range was.names {
		if is.of[name] == nil {
			c.add(p.in("[%s]", name), removed)
		}
	}
	if len(c.fields) == before && !equality.Semantic.DeepEqual(old, new) {
		c.add(p, "in another order")
	}
}

type variableList struct {
	names []string // each once
	of    map[string][]v1.EnvVar
}

func variables(all []v1.EnvVar) variableList {
	l := variableList{of: map[string][]v1.EnvVar{}}
	for _, v := range all {
		if l.of[v.Name] == nil {
			l.names = append(l.names, v.Name)
		}
		l.of[v.Name] = append(l.of[v.Name], v)
	}
	return l
}

// ports compares the ports of a container. Those of the machine are the sandbox's; the
// others are what the container's annotations tell.
func (c *comparison) ports(p place, old, new []v1.ContainerPort) {
	if equality.Semantic.DeepEqual(old, new) {
		return
	}
	p = p.of(Restart)
	if !slices.Equal(hostPorts(old), hostPorts(new)) {
		p = p.of(Replace)
	}
	c.add(p, shorten(portWords(old), portWords(new)))
}

func hostPorts(all []v1.ContainerPort) []v1.ContainerPort {
	var out []v1.ContainerPort
	for _, port := range all {
		if port.HostPort > 0 {
			port.Name = ""
			out = append(out, port)
		}
	}
	return out
}

func portWords(all []v1.ContainerPort) string {
	var out []string
	for _, p := range all {
		word := strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.ContainerPort, p.Protocol))
		if p.HostPort > 0 {
			word += strings.TrimRight(fmt.Sprintf(" at host port %d of %s", p.HostPort, p.HostIP), "of ")
		}
		out = append(out, word)
	}
	return cmp.Or(strings.Join(out, ", "), none)
}

// containerResources compares what a container asks for. Kubernetes resizes cpu and memory
// in place, does not take a request or limit away so, and gives the container a say.
func (c *comparison) containerResources(p place, old, new v1.ResourceRequirements) {
	c.amounts(p.in(".limits"), "limits", old.Limits, new.Limits)
	c.amounts(p.in(".requests"), "requests", old.Requests, new.Requests)
	c.values(p.in(".claims").of(Replace), reflect.ValueOf(old.Claims), reflect.ValueOf(new.Claims))
}

func (c *comparison) amounts(p place, list string, old, new v1.ResourceList) {
	keys := map[v1.ResourceName]bool{}
	for _, l := range []v1.ResourceList{old, new} {
		for name := range l {
			keys[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		x, was := old[name]
		y, is := new[name]
		if was == is && x.Cmp(y) == 0 {
			continue
		}
		one := p.in("[%s]", name).of(c.resizing(p.container, name))
		if !is {
			one.kind = Replace
		}
		one.source = p.container + "/" + list + "." + string(name)
		c.add(one, change(one, given(x, was), given(y, is)))
	}
}

// resizing returns what it takes to give a container, or the pod for "", another amount.
func (c *comparison) resizing(container string, name v1.ResourceName) Kind {
	if name != v1.ResourceCPU && name != v1.ResourceMemory {
		return Replace
	}
	for i := range c.new.Spec.Containers {
		ct := &c.new.Spec.Containers[i]
		restarts := v1.ContainerResizePolicy{ResourceName: name, RestartPolicy: v1.RestartContainer}
		if ct.Name == container && slices.Contains(ct.ResizePolicy, restarts) {
			return Restart
		}
	}
	return Resize
}

// podResources compares what the pod as a whole asks for. Containers without a limit of
// their own have the pod's.
func (c *comparison) podResources(p place, old, new *v1.ResourceRequirements) {
	if old == nil || new == nil {
		c.values(p.of(Replace), reflect.ValueOf(old), reflect.ValueOf(new))
		return
	}
	c.containerResources(p, *old, *new)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if a, b := old.Limits[name], new.Limits[name]; a.Cmp(b) != 0 {
			c.inherited(p.in(".limits[%s]", name), name)
		}
	}
}

// inherited resizes the containers that have a limit of the pod's.
func (c *comparison) inherited(p place, name v1.ResourceName) {
	for i := range c.new.Spec.Containers {
		ct := &c.new.Spec.Containers[i]
		if own := ct.Resources.Limits[name]; !own.IsZero() {
			continue
		}
		k := c.resizing(ct.Name, name)
		if k == Restart && c.ends(ct.Name) {
			k = Replace
		}
		c.touch(ct.Name, k)
		for j := range c.fields {
			if c.fields[j].Path == p.path {
				c.fields[j].Kind = max(c.fields[j].Kind, k)
			}
		}
	}
}
