package update

import (
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests/annotations"
	"monopod/manifests/defaults"
	"monopod/manifests/poduid"
)

// Compare returns how the next version of a pod differs from the running one. Both are as accepted:
// with their defaults and their identity. Differences between instances do not count: the status,
// computed uids, the agent's annotations.
//
// Each difference gets the first kind of change whose mask removes it from both versions: a field
// that no mask removes, such as one of a newer API, replaces the pod.
func Compare(old, new *v1.Pod) Verdict {
	if sameManifest(old, new) {
		return Verdict{}
	}
	c := &comparison{old: manifestOf(old), new: manifestOf(new)}
	nameImages(c.old, c.new)
	fields := differences(c.old, c.new)
	if len(fields) == 0 {
		return Verdict{}
	}
	fields = slices.DeleteFunc(c.kinds(fields), func(f Field) bool { return f.Kind == Nothing })
	if was, is := podspec.QosClass(c.old), podspec.QosClass(c.new); was != is { // the pod's cgroup has another path
		fields = append(fields, Field{Path: "status.qosClass", Kind: Replace, Change: string(was) + " -> " + string(is)})
	}
	return c.verdict(fields)
}

// kinds determines the kind of each field.
func (c *comparison) kinds(fields []Field) []Field {
	a, b := c.old.DeepCopy(), c.new.DeepCopy()
	for k, leaveOut := range masks {
		leaveOut(c, a, b)
		still := differences(a, b)
		if len(still) == 0 {
			break
		}
		fields = raise(fields, still, Kind(k)+1)
	}
	return fields
}

// raise sets the kind of the fields that still differ. It adds fields that were not reported
// before.
func raise(fields, still []Field, k Kind) []Field {
	for _, f := range still {
		i := slices.IndexFunc(fields, func(g Field) bool { return g.Path == f.Path })
		if i < 0 {
			i, fields = len(fields), append(fields, f)
		}
		fields[i].Kind = k
	}
	return fields
}

// comparison has the two versions as their manifests have them.
type comparison struct{ old, new *v1.Pod }

// sameManifest is a quick check for the most frequent case: versions without any difference.
func sameManifest(old, new *v1.Pod) bool {
	return old == new || reflect.DeepEqual(&old.ObjectMeta, &new.ObjectMeta) && reflect.DeepEqual(&old.Spec, &new.Spec)
}

// ours are the annotations that the agent sets.
var ours = slices.Concat(status.Annotations, []string{poduid.AnnotationHash, "kubernetes.io/config.source", "kubernetes.io/config.seen",
	"kubernetes.io/config.mirror"})

// manifestOf returns a copy of a pod without the fields of its instance and without the toleration
// that all pods of files get. Volumes have no order, and missing settings equal empty ones.
func manifestOf(p *v1.Pod) *v1.Pod {
	out := p.DeepCopy()
	out.Status = v1.PodStatus{}
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds, out.ManagedFields = nil, nil, nil
	for _, key := range ours {
		delete(out.Annotations, key)
	}
	s := &out.Spec
	s.Tolerations = slices.DeleteFunc(s.Tolerations, func(t v1.Toleration) bool {
		return t == v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	})
	slices.SortStableFunc(s.Volumes, func(a, b v1.Volume) int { return strings.Compare(a.Name, b.Name) })
	fill(&s.SecurityContext)
	fill(&s.DNSConfig)
	fill(&s.Affinity)
	for _, c := range podspec.AllContainers(out) {
		fill(&c.SecurityContext)
		fill(&c.Lifecycle)
	}
	return out
}

// nameImages replaces the names of images whose tags have moved between two versions by what they
// mean in each. A tag of which only one version says what it means has not moved.
func nameImages(old, new *v1.Pod) {
	was, is := annotations.TagImagesOf(old), annotations.TagImagesOf(new)
	for _, p := range []*v1.Pod{old, new} {
		delete(p.Annotations, annotations.TagImages)
	}
	for name := range is {
		if was[name] != "" && was[name] != is[name] {
			rename(old, name, was[name])
			rename(new, name, is[name])
		}
	}
}

// rename gives an image another name.
func rename(p *v1.Pod, from, to string) {
	for _, c := range podspec.AllContainers(p) {
		if c.Image == from {
			c.Image = to
		}
	}
	for i := range p.Spec.Volumes {
		if image := p.Spec.Volumes[i].Image; image != nil && image.Reference == from {
			image.Reference = to
		}
	}
}

// fill sets a pointer that is nil to the zero value.
func fill[T any](p **T) {
	if *p == nil {
		*p = new(T)
	}
}

// ends reports whether a container runs to completion in either version: one that may have ended
// cannot restart, so its pod starts over as a whole.
func (c *comparison) ends(container string) bool {
	return endsIn(c.old, container) || endsIn(c.new, container)
}

func endsIn(p *v1.Pod, container string) bool {
	ct := containerOf(p, container)
	return ct != nil && defaults.RestartPolicyOf(p, ct) != v1.RestartPolicyAlways
}

// containerOf returns the regular container of this name, nil if there is none.
func containerOf(p *v1.Pod, name string) *v1.Container {
	i := slices.IndexFunc(p.Spec.Containers, func(c v1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Spec.Containers[i]
}

// resizing returns the kind of a change of a container's amount of a resource. Kubernetes resizes
// cpu and memory in place, according to the container's resize policy.
func (c *comparison) resizing(ct *v1.Container, name v1.ResourceName) Kind {
	switch restarts := (v1.ContainerResizePolicy{ResourceName: name, RestartPolicy: v1.RestartContainer}); {
	case !slices.Contains(ct.ResizePolicy, restarts):
		return Resize
	case c.ends(ct.Name):
		return Replace
	}
	return Restart
}

// heirs returns the containers that get another limit with the pod: those without a limit of their
// own.
func (c *comparison) heirs(name v1.ResourceName) (all []*v1.Container) {
	old, new := c.old.Spec.Resources, c.new.Spec.Resources
	if old == nil || new == nil {
		return nil
	}
	if was, is := old.Limits[name], new.Limits[name]; was.Cmp(is) == 0 {
		return nil
	}
	for i := range c.new.Spec.Containers {
		ct := &c.new.Spec.Containers[i]
		if own := ct.Resources.Limits[name]; own.IsZero() {
			all = append(all, ct)
		}
	}
	return all
}
