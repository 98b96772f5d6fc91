package objects

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/documents"
)

// ref is what a pod refers to.
type ref struct {
	manifests.ObjectKey
	keys     []string // that the object must have
	optional bool
	file     bool // it is for a volume, which shows binaryData, too
}

// missing says what of the reference is not there, in the kubelet's words.
func (r ref) missing(s *Set) string {
	kind := strings.ToLower(r.Kind)
	has, there := s.keys(r.ObjectKey, r.file)
	switch {
	case r.optional:
		return ""
	case !there:
		return fmt.Sprintf("%s %q not found", kind, r.Name)
	}
	for _, key := range r.keys {
		if !has(key) {
			return fmt.Sprintf("couldn't find key %s in %s %s/%s", key, r.Kind, r.Namespace, r.Name)
		}
	}
	return ""
}

// keys returns which keys volumes or variables find in an object.
func (s *Set) keys(key manifests.ObjectKey, file bool) (has func(string) bool, there bool) {
	o := s.get(key)
	if o == nil {
		return nil, false
	}
	return func(k string) bool {
		if o.Secret != nil {
			_, is := o.Secret.Data[k]
			return is
		}
		_, is := o.ConfigMap.Data[k]
		_, binary := o.ConfigMap.BinaryData[k]
		return is || file && binary
	}, true
}

// Missing returns a sentence about the first thing that the pod refers to and that is
// not there, in the kubelet's words; "": all that is not optional is there. Pull
// secrets are optional.
func (s *Set) Missing(pod *v1.Pod) string {
	for r := range refs(pod) {
		if text := r.missing(s); text != "" {
			return text
		}
	}
	return ""
}

// Concern reports whether the pod refers to one of the objects.
func Concern(pod *v1.Pod, changed []manifests.ObjectKey) bool {
	for r := range refs(pod) {
		if slices.Contains(changed, r.ObjectKey) {
			return true
		}
	}
	return false
}

// Names returns the objects that the pod refers to, each once.
func Names(pod *v1.Pod) (all []manifests.ObjectKey) {
	for r := range refs(pod) {
		if !slices.Contains(all, r.ObjectKey) {
			all = append(all, r.ObjectKey)
		}
	}
	return all
}

// refs yields what a pod refers to: for its volumes, which come first, its containers and
// its pulls.
func refs(pod *v1.Pod) iter.Seq[ref] {
	return func(yield func(ref) bool) {
		containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
		for k := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[k]
			mounted := slices.ContainsFunc(containers, func(c v1.Container) bool {
				return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name })
			})
			for _, r := range volumeRefs(pod.Namespace, v) {
				if mounted && !yield(r) {
					return
				}
			}
		}
		for k := range containers {
			for _, r := range envRefs(pod.Namespace, &containers[k]) {
				if !yield(r) {
					return
				}
			}
		}
		for _, s := range pod.Spec.ImagePullSecrets {
			if s.Name != "" && !yield(ref{ObjectKey: manifests.ObjectKey{Kind: documents.Secret, Namespace: pod.Namespace, Name: s.Name}, optional: true}) {
				return
			}
		}
	}
}

// volumeRefs returns what a volume shows.
func volumeRefs(namespace string, v *v1.Volume) (all []ref) {
	add := func(kind, name string, items []v1.KeyToPath, optional *bool) {
		r := ref{ObjectKey: manifests.ObjectKey{Kind: kind, Namespace: namespace, Name: name}, optional: isTrue(optional), file: true}
		for _, i := range items {
			r.keys = append(r.keys, i.Key)
		}
		all = append(all, r)
	}
	if c := v.ConfigMap; c != nil {
		add(documents.ConfigMap, c.Name, c.Items, c.Optional)
	}
	if c := v.Secret; c != nil {
		add(documents.Secret, c.SecretName, c.Items, c.Optional)
	}
	if v.Projected == nil {
		return all
	}
	for _, from := range v.Projected.Sources {
		if c := from.ConfigMap; c != nil {
			add(documents.ConfigMap, c.Name, c.Items, c.Optional)
		}
		if c := from.Secret; c != nil {
			add(documents.Secret, c.Name, c.Items, c.Optional)
		}
	}
	return all
}

// envRefs returns what a container's variables are made of.
func envRefs(namespace string, c *v1.Container) (all []ref) {
	add := func(kind, name string, optional *bool, keys ...string) {
		key := manifests.ObjectKey{Kind: kind, Namespace: namespace, Name: name}
		all = append(all, ref{ObjectKey: key, keys: keys, optional: isTrue(optional)})
	}
	for _, e := range c.EnvFrom {
		if r := e.ConfigMapRef; r != nil {
			add(documents.ConfigMap, r.Name, r.Optional)
		}
		if r := e.SecretRef; r != nil {
			add(documents.Secret, r.Name, r.Optional)
		}
	}
	for _, e := range c.Env {
		if e.Value != "" || e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add(documents.ConfigMap, r.Name, r.Optional, r.Key)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add(documents.Secret, r.Name, r.Optional, r.Key)
		}
	}
	return all
}

func isTrue(b *bool) bool { return b != nil && *b }

// SecretValues returns the values of the Secrets that the pod refers to, sorted by name
// and key.
func (s *Set) SecretValues(pod *v1.Pod) (values []string) {
	if s == nil || s.secrets == 0 {
		return nil // at no cost: this is asked of each pod of a node
	}
	seen := map[manifests.ObjectKey]bool{}
	for r := range refs(pod) {
		o := s.get(r.ObjectKey)
		if o == nil || o.Secret == nil || seen[r.ObjectKey] {
			continue
		}
		seen[r.ObjectKey] = true
		for _, key := range slices.Sorted(maps.Keys(o.Secret.Data)) {
			values = append(values, string(o.Secret.Data[key]))
		}
	}
	return values
}
