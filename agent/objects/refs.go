package objects

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/documents"
	"monopod/manifests/podfiles"
)

// ref is a reference of a pod to an object.
type ref struct {
	manifests.ObjectKey
	keys     []string // that the object must have
	optional bool
	file     bool // it is for a volume, which shows binaryData, too
	at       place
}

// place is where a pod's spec refers to an object: the elements of a field path, such as
// containers[0].envFrom[1].configMapRef. The path is built only when it is reported.
type place struct {
	list  string
	index int
	sub   string // a list within the item; "": the field is directly in it
	item  int
	field string
	name  string // the subfield that names the object
	keys  string // the subfield that names a key, with %d if there are several
}

// path returns the field that names the object (key < 0), or the key with that index.
func (p place) path(key int) string {
	name := p.name
	if key >= 0 {
		name = strings.Replace(p.keys, "%d", strconv.Itoa(key), 1)
	}
	if p.sub == "" {
		return fmt.Sprintf("spec.%s[%d].%s.%s", p.list, p.index, p.field, name)
	}
	return fmt.Sprintf("spec.%s[%d].%s[%d].%s.%s", p.list, p.index, p.sub, p.item, p.field, name)
}

// missing returns which part of the reference does not exist, in the kubelet's words, and the index
// of the missing key; -1: the object.
func (r ref) missing(s *Set) (text string, key int) {
	has, there := s.keys(r.ObjectKey, r.file)
	switch {
	case r.optional:
		return "", -1
	case !there:
		return fmt.Sprintf("%s %q not found", strings.ToLower(r.Kind), r.Name), -1
	}
	for k, key := range r.keys {
		if !has(key) {
			return fmt.Sprintf("couldn't find key %s in %s %s/%s", key, r.Kind, r.Namespace, r.Name), k
		}
	}
	return "", -1
}

// keys returns a function that reports whether a volume (file) or a variable finds a key in an
// object.
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

// Missing returns a sentence about the first missing thing that the pod refers to, in the kubelet's
// words, or about volumes that are too large; "": everything that is not optional exists. Pull
// secrets are optional.
func (s *Set) Missing(pod *manifests.Pod) string {
	for r := range refs(pod.Pod) {
		if text, _ := r.missing(s); text != "" {
			return text
		}
	}
	if pod.Unbounded {
		return ""
	}
	if large := podfiles.Check(pod.Pod, s); large != nil {
		return large.Text
	}
	return ""
}

// MissingRef is something that a pod refers to and that does not exist, or is too large.
type MissingRef struct {
	Field string // the reference, such as spec.containers[0].envFrom[1].configMapRef.name
	Text  string // in the words of Missing
}

// AllMissing returns everything of which Missing returns the first, each once.
func (s *Set) AllMissing(pod *v1.Pod) (all []MissingRef) {
	for r := range refs(pod) {
		text, key := r.missing(s)
		if text != "" && !slices.ContainsFunc(all, func(m MissingRef) bool { return m.Text == text }) {
			all = append(all, MissingRef{Field: r.at.path(key), Text: text})
		}
	}
	if large := podfiles.Check(pod, s); large != nil {
		all = append(all, MissingRef{Field: large.Field, Text: large.Text})
	}
	return all
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

// refs yields the references of a pod: first those of its mounted volumes, then those of its
// containers and its pull secrets.
func refs(pod *v1.Pod) iter.Seq[ref] {
	return func(yield func(ref) bool) {
		containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
		for k := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[k]
			mounted := slices.ContainsFunc(containers, func(c v1.Container) bool {
				return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name })
			})
			for _, r := range volumeRefs(pod.Namespace, v) {
				r.at.list, r.at.index = "volumes", k
				if mounted && !yield(r) {
					return
				}
			}
		}
		for k := range containers {
			list, index := "initContainers", k
			if first := len(pod.Spec.InitContainers); k >= first {
				list, index = "containers", k-first
			}
			for _, r := range envRefs(pod.Namespace, &containers[k]) {
				r.at.list, r.at.index = list, index
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

// volumeRefs returns the references of a volume.
func volumeRefs(namespace string, v *v1.Volume) (all []ref) {
	add := func(at place, kind, name string, items []v1.KeyToPath, optional *bool) {
		at.keys = "items[%d].key"
		if at.name == "" {
			at.name = "name"
		}
		r := ref{ObjectKey: manifests.ObjectKey{Kind: kind, Namespace: namespace, Name: name}, optional: isTrue(optional), file: true, at: at}
		for _, i := range items {
			r.keys = append(r.keys, i.Key)
		}
		all = append(all, r)
	}
	if c := v.ConfigMap; c != nil {
		add(place{field: "configMap"}, documents.ConfigMap, c.Name, c.Items, c.Optional)
	}
	if c := v.Secret; c != nil {
		add(place{field: "secret", name: "secretName"}, documents.Secret, c.SecretName, c.Items, c.Optional)
	}
	if v.Projected == nil {
		return all
	}
	for k, from := range v.Projected.Sources {
		if c := from.ConfigMap; c != nil {
			add(place{sub: "projected.sources", item: k, field: "configMap"}, documents.ConfigMap, c.Name, c.Items, c.Optional)
		}
		if c := from.Secret; c != nil {
			add(place{sub: "projected.sources", item: k, field: "secret"}, documents.Secret, c.Name, c.Items, c.Optional)
		}
	}
	return all
}

// envRefs returns the references of a container's variables.
func envRefs(namespace string, c *v1.Container) (all []ref) {
	add := func(sub string, item int, field, kind, name string, optional *bool, keys ...string) {
		key := manifests.ObjectKey{Kind: kind, Namespace: namespace, Name: name}
		all = append(all, ref{ObjectKey: key, keys: keys, optional: isTrue(optional),
			at: place{sub: sub, item: item, field: field, name: "name", keys: "key"}})
	}
	for k, e := range c.EnvFrom {
		if r := e.ConfigMapRef; r != nil {
			add("envFrom", k, "configMapRef", documents.ConfigMap, r.Name, r.Optional)
		}
		if r := e.SecretRef; r != nil {
			add("envFrom", k, "secretRef", documents.Secret, r.Name, r.Optional)
		}
	}
	for k, e := range c.Env {
		if e.Value != "" || e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("env", k, "valueFrom.configMapKeyRef", documents.ConfigMap, r.Name, r.Optional, r.Key)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("env", k, "valueFrom.secretKeyRef", documents.Secret, r.Name, r.Optional, r.Key)
		}
	}
	return all
}

func isTrue(b *bool) bool { return b != nil && *b }
