package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// RestartOnChange is the annotation of a pod whose containers restart when an object of
// which their variables are made has changed.
const RestartOnChange = "monopod.restart-on-config-change"

// Env returns what the variables of the pod's containers are made of, by container: one
// word for each object, with a digest of what they use of it. It is for pods with
// RestartOnChange only, and leaves out containers that use no object, or one that is
// missing, as they could not start again.
func (s *Set) Env(pod *v1.Pod) map[string]string {
	if pod.Annotations[RestartOnChange] != "true" {
		return nil
	}
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
	texts := map[manifests.ObjectKey]string{}
	for _, r := range all {
		texts[r.ObjectKey] += s.used(r)
	}
	var words []string
	for _, key := range slices.SortedFunc(maps.Keys(texts), manifests.ObjectKey.Compare) {
		sum := sha256.Sum256([]byte(salt + "\x00" + texts[key]))
		words = append(words, strings.ToLower(key.Kind)+"/"+key.Name+"="+hex.EncodeToString(sum[:8]))
	}
	return strings.Join(words, " ")
}

// used is what a reference uses of its object, unambiguous.
func (s *Set) used(r ref) string {
	data := map[string]string{}
	switch o := s.get(r.ObjectKey); {
	case o == nil:
		return "none;"
	case o.Secret != nil:
		for k, v := range o.Secret.Data {
			data[k] = string(v)
		}
	default:
		maps.Copy(data, o.ConfigMap.Data)
	}
	if len(r.keys) > 0 {
		maps.DeleteFunc(data, func(k, _ string) bool { return !slices.Contains(r.keys, k) })
	}
	return fmt.Sprintf("%q;", data) // sorted by key
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
