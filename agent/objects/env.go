package objects

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Env is EnvOf for the containers to which something happens when an object has changed; nil: there
// are none. One that is told of a change needs nothing for its variables.
func (s *Set) Env(pod *v1.Pod) map[string]string {
	if !annotations.HasReactions(pod) {
		return nil
	}
	out := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		reaction := annotations.ReactionOf(pod, c.Name)
		if !reaction.IsSet() {
			continue
		}
		if words := s.wordsOf(pod, &c, reaction.Reloads()); words != "" {
			out[c.Name] = words
		}
	}
	return out
}

// inVolume is the prefix of words about what a container mounts. Former agents did not record them,
// and find their own words among them.
const inVolume = "volume/"

// EnvOf returns digests of what the variables of the pod's containers, and the volumes that they
// mount, use of objects: one word for each object, by container. It leaves out containers that use
// no object, and those with a missing one, as they could not start again. It is recorded for each
// container that is created, as the annotation that asks for something may be set while it runs.
func (s *Set) EnvOf(pod *v1.Pod) map[string]string {
	out := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if words := s.wordsOf(pod, &c, false); words != "" {
			out[c.Name] = words
		}
	}
	return out
}

// wordsOf returns the words of a container; "": it uses no object, or one is missing. runsOn: it does
// not start again, so that its variables need nothing.
func (s *Set) wordsOf(pod *v1.Pod, c *v1.Container, runsOn bool) string {
	env, files := envRefs(pod.Namespace, c), mountedRefs(pod, c)
	needs := files
	if !runsOn {
		needs = slices.Concat(env, files)
	}
	if slices.ContainsFunc(needs, func(r ref) bool { text, _ := r.missing(s); return text != "" }) {
		return ""
	}
	return strings.Join(append(s.words("", string(pod.UID), env), s.words(inVolume, string(pod.UID), files)...), " ")
}

// mountedRefs returns the references of the volumes that a container mounts.
func mountedRefs(pod *v1.Pod, c *v1.Container) (all []ref) {
	for k := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[k]
		if slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name }) {
			all = append(all, volumeRefs(pod.Namespace, v)...)
		}
	}
	return all
}

// digests returns such as "configmap/a=0123456789abcdef secret/b=...", sorted.
func (s *Set) digests(salt string, all []ref) string {
	return strings.Join(s.words("", salt, all), " ")
}

// words returns the words of digests, each with a prefix.
func (s *Set) words(prefix, salt string, all []ref) (words []string) {
	uses := map[manifests.ObjectKey][]ref{}
	for _, r := range all {
		uses[r.ObjectKey] = append(uses[r.ObjectKey], r)
	}
	for _, key := range slices.SortedFunc(maps.Keys(uses), manifests.ObjectKey.Compare) {
		sum := s.digest(salt, key, uses[key])
		words = append(words, prefix+strings.ToLower(key.Kind)+"/"+key.Name+"="+hex.EncodeToString(sum[:8]))
	}
	return words
}

// Changed returns what differs between two results of Env for a container, such as `ConfigMap "a"`;
// "": nothing. Volumes are compared if before has them.
func Changed(before, now string) string {
	if before == now {
		return ""
	}
	was := strings.Fields(before)
	volumesKnown := slices.ContainsFunc(was, func(word string) bool { return strings.HasPrefix(word, inVolume) })
	for _, word := range strings.Fields(now) {
		name, isVolume := strings.CutPrefix(word, inVolume)
		if slices.Contains(was, word) || isVolume && !volumesKnown {
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		kind, name, _ := strings.Cut(name, "/")
		if kind == "secret" {
			return fmt.Sprintf("Secret %q", name)
		}
		return fmt.Sprintf("ConfigMap %q", name)
	}
	return ""
}
