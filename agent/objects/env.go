package objects

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/decode"
)

// RestartOnChange is the annotation of a pod whose containers restart when an object of
// which their variables are made has changed.
const RestartOnChange = decode.AnnotationRestart

// Env is EnvOf of a pod with RestartOnChange; of another, nothing.
func (s *Set) Env(pod *v1.Pod) map[string]string {
	if pod.Annotations[RestartOnChange] != "true" {
		return nil
	}
	return s.EnvOf(pod)
}

// EnvOf returns what the variables of the pod's containers are made of, by container: one
// word for each object, with a digest of what they use of it. It leaves out containers that
// use no object, or one that is missing, as they could not start again. It is recorded of each
// container that is made, as RestartOnChange may come while it runs.
func (s *Set) EnvOf(pod *v1.Pod) map[string]string {
	out := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all := envRefs(pod.Namespace, &c)
		missing := slices.ContainsFunc(all, func(r ref) bool { text, _ := r.missing(s); return text != "" })
		if len(all) > 0 && !missing {
			out[c.Name] = s.digests(string(pod.UID), all)
		}
	}
	return out
}

// digests is such as "configmap/a=0123456789abcdef secret/b=...", sorted.
func (s *Set) digests(salt string, all []ref) string {
	uses := map[manifests.ObjectKey][]ref{}
	for _, r := range all {
		uses[r.ObjectKey] = append(uses[r.ObjectKey], r)
	}
	var words []string
	for _, key := range slices.SortedFunc(maps.Keys(uses), manifests.ObjectKey.Compare) {
		sum := s.digest(salt, key, uses[key])
		words = append(words, strings.ToLower(key.Kind)+"/"+key.Name+"="+hex.EncodeToString(sum[:8]))
	}
	return strings.Join(words, " ")
}

// Changed names what differs between two results of Env for a container, such as
// `ConfigMap "a"`; "": nothing does.
func Changed(before, now string) string {
	if before == now {
		return ""
	}
	was := strings.Fields(before)
	for _, word := range strings.Fields(now) {
		if slices.Contains(was, word) {
			continue
		}
		name, _, _ := strings.Cut(word, "=")
		kind, name, _ := strings.Cut(name, "/")
		if kind == "secret" {
			return fmt.Sprintf("Secret %q", name)
		}
		return fmt.Sprintf("ConfigMap %q", name)
	}
	return ""
}
