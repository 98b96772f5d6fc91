package objects

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Edit is the effect of a changed object on a pod. It contains names of keys, but no values.
type Edit struct {
	Key      manifests.ObjectKey
	Follow   bool     // volumes show the new content
	Keep     bool     // volumes keep the former content, as something that they need is gone
	Former   []string // running containers that have the former value until they restart
	Restarts []string // running containers that are restarted for it, as an annotation of the pod requests
	Reloads  []string // those that are told of it
	Lacks    string   // what the pod's next start needs and is gone; "": nothing
}

// byGate describes when a restart or reload for an edit happens. The gate decides later, so the text
// must be true for any decision.
const byGate = " with it, once no hold, update window or lock keeps that away"

// String returns one line for the pod's owner.
func (e Edit) String() string {
	var all []string
	if e.Follow {
		all = append(all, "volumes follow")
	}
	if e.Keep {
		all = append(all, "volumes keep what they show")
	}
	if len(e.Restarts) > 0 {
		all = append(all, names(e.Restarts, "restarts"+byGate, "restart"+byGate))
	}
	if len(e.Reloads) > 0 {
		all = append(all, names(e.Reloads, "is told to reload"+byGate, "are told to reload"+byGate))
	}
	if len(e.Former) > 0 {
		all = append(all, names(e.Former, "has the former value until it restarts", "have the former value until they restart"))
	}
	if e.Lacks != "" {
		all = append(all, "its next start would fail: "+e.Lacks)
	}
	return fmt.Sprintf("%s %q: %s", e.Key.Kind, e.Key.Name, strings.Join(all, "; "))
}

func names(all []string, one, several string) string {
	if len(all) == 1 {
		return "container " + all[0] + " " + one
	}
	return "containers " + strings.Join(all, ", ") + " " + several
}

// Edits returns the effects of the difference between two sets on a pod, one for each object whose
// used part changes. runs reports whether a container is running: the others start with the new
// content.
func Edits(pod *v1.Pod, before, after *Set, runs func(container string) bool) (all []Edit) {
	for _, key := range Names(pod) {
		was, is := before.get(key), after.get(key)
		if was == is || was != nil && is != nil && was.Same(is) {
			continue
		}
		e := Edit{Key: key}
		for r := range refs(pod) {
			if r.ObjectKey == key && differs(was, is, r) {
				e.add(pod, r, before, after, runs)
			}
		}
		if e.Follow || e.Keep || len(e.Former)+len(e.Restarts)+len(e.Reloads) > 0 || e.Lacks != "" {
			all = append(all, e)
		}
	}
	return all
}

// add adds the effect through one reference to the object.
func (e *Edit) add(pod *v1.Pod, r ref, before, after *Set, runs func(string) bool) {
	isGone := false
	if text, k := r.missing(after); text != "" {
		had, _ := r.missing(before)
		isGone = had == ""
		if isGone && e.Lacks == "" {
			e.Lacks = "it is gone"
			if k >= 0 {
				e.Lacks = fmt.Sprintf("key %s is gone", r.keys[k])
			}
		}
	}
	switch r.at.list {
	case "volumes":
		e.addVolume(pod, pod.Spec.Volumes[r.at.index].Name, isGone, after, runs)
	case "containers":
		e.addContainer(pod, &pod.Spec.Containers[r.at.index], after, runs)
	case "initContainers":
		if c := &pod.Spec.InitContainers[r.at.index]; !runsOnce(pod, c) {
			e.addContainer(pod, c, after, runs)
		}
	}
}

// addVolume is add for a volume. A container that mounts a part of the volume keeps the former
// file.
func (e *Edit) addVolume(pod *v1.Pod, volume string, isGone bool, after *Set, runs func(string) bool) {
	env := after.Env(pod)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			isPart := m.SubPath != "" || m.SubPathExpr != ""
			if m.Name != volume || !runs(c.Name) {
				continue
			}
			restarts := env[c.Name] != "" && !runsOnce(pod, &c) && e.reacts(pod, c.Name)
			switch {
			case restarts:
				e.Follow = e.Follow || !isPart
			case isPart:
				e.Former = with(e.Former, c.Name)
			case isGone:
				e.Keep = true
			default:
				e.Follow = true
			}
		}
	}
}

// reacts adds what the pod requests for a container whose object has changed, and reports whether
// that is a restart, by which it gets the new content.
func (e *Edit) reacts(pod *v1.Pod, container string) (restarts bool) {
	reaction := annotations.ReactionOf(pod, container)
	switch {
	case reaction.Restart:
		e.Restarts = with(e.Restarts, container)
	case reaction.Reloads():
		e.Reloads = with(e.Reloads, container)
	}
	return reaction.Restart
}

// runsOnce reports whether a container is an init container that is not a sidecar.
func runsOnce(pod *v1.Pod, c *v1.Container) bool {
	isSidecar := c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
	return !isSidecar && slices.ContainsFunc(pod.Spec.InitContainers, func(i v1.Container) bool { return i.Name == c.Name })
}

// addContainer is add for a container's variables.
func (e *Edit) addContainer(pod *v1.Pod, c *v1.Container, after *Set, runs func(string) bool) {
	if !runs(c.Name) {
		return
	}
	restarts := after.Env(pod)[c.Name] != "" && e.reacts(pod, c.Name)
	if !restarts {
		e.Former = with(e.Former, c.Name)
	}
}

func with(all []string, name string) []string {
	if slices.Contains(all, name) {
		return all
	}
	return append(all, name)
}

// differs reports whether a reference uses something that differs between two contents of an
// object; nil: it does not exist.
func differs(a, b *manifests.Object, r ref) bool {
	keys := r.keys
	if len(keys) == 0 {
		keys = slices.Concat(keysOf(a), keysOf(b))
	}
	return (a == nil) != (b == nil) || slices.ContainsFunc(keys, func(key string) bool {
		was, had := valueOf(a, key, r.file)
		is, has := valueOf(b, key, r.file)
		return had != has || !bytes.Equal(was, is)
	})
}

func keysOf(o *manifests.Object) (all []string) {
	switch {
	case o == nil:
	case o.Secret != nil:
		for key := range o.Secret.Data {
			all = append(all, key)
		}
	default:
		for key := range o.ConfigMap.Data {
			all = append(all, key)
		}
		for key := range o.ConfigMap.BinaryData {
			all = append(all, key)
		}
	}
	return all
}

// valueOf returns the value of a key as a volume (file) or a variable gets it.
func valueOf(o *manifests.Object, key string, file bool) (value []byte, is bool) {
	if o == nil {
		return nil, false
	}
	if o.Secret != nil {
		value, is = o.Secret.Data[key]
		return value, is
	}
	text, is := o.ConfigMap.Data[key]
	if is {
		return []byte(text), true
	}
	value, is = o.ConfigMap.BinaryData[key]
	return value, is && file
}

// Of returns a set of the objects that a pod refers to; nil: there is none.
func (s *Set) Of(pod *v1.Pod) *Set {
	var own []*manifests.Object
	for _, key := range Names(pod) {
		if o := s.get(key); o != nil {
			own = append(own, o)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return NewSet(own)
}

// SameFor reports whether the objects that a pod refers to are the same in another set.
func (s *Set) SameFor(pod *v1.Pod, other *Set) bool {
	return !slices.ContainsFunc(Names(pod), func(key manifests.ObjectKey) bool {
		a, b := s.get(key), other.get(key)
		return a != b && (a == nil || b == nil || !a.Same(b))
	})
}

// With returns a set in which these objects replace those with the same keys.
func (s *Set) With(others []*manifests.Object) *Set {
	next := NewSet(others)
	if s != nil {
		for key, o := range s.all {
			if next.all[key] == nil {
				next.all[key] = o
			}
		}
	}
	return next
}

// Fixed returns the digests of what a container uses of objects from its start on: the sources of
// its variables, and the volumes of which it mounts a part. The result is for Changed.
func (s *Set) Fixed(pod *v1.Pod, container string) string {
	var all []ref
	for r := range refs(pod) {
		switch r.at.list {
		case "volumes":
			if mountsPart(pod, container, pod.Spec.Volumes[r.at.index].Name) {
				all = append(all, r)
			}
		case "containers":
			if pod.Spec.Containers[r.at.index].Name == container {
				all = append(all, r)
			}
		case "initContainers":
			if pod.Spec.InitContainers[r.at.index].Name == container {
				all = append(all, r)
			}
		}
	}
	return s.digests(string(pod.UID), all)
}

func mountsPart(pod *v1.Pod, container, volume string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c v1.Container) bool {
		return c.Name == container && slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool {
			return m.Name == volume && (m.SubPath != "" || m.SubPathExpr != "")
		})
	})
}

// MissingFor returns the first missing thing that a container of the pod needs to start, in the
// words of Missing.
func (s *Set) MissingFor(pod *v1.Pod, container string) string {
	for r := range refs(pod) {
		isOthers := r.at.list == "containers" && pod.Spec.Containers[r.at.index].Name != container ||
			r.at.list == "initContainers" && pod.Spec.InitContainers[r.at.index].Name != container
		if isOthers {
			continue
		}
		if text, _ := r.missing(s); text != "" {
			return text
		}
	}
	return ""
}
