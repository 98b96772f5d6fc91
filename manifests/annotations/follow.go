package annotations

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// FollowImages is the annotation that sets how often it is checked whether a tag of the pod's images
// has moved, such as 1h; 0s: never.
const FollowImages = "monopod.follow-images"

const (
	followLeast = 10 * time.Minute
	followMost  = 30 * 24 * time.Hour
)

// FollowOf returns that time, whether the pod sets it, and whether it is valid or absent. Pods that
// run to completion follow no tags.
func FollowOf(pod *v1.Pod) (every time.Duration, said, good bool) {
	text, said := pod.Annotations[FollowImages]
	if !said {
		return 0, false, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && (d < followLeast || d > followMost) {
		return 0, false, false
	}
	return d, true, true
}

// TagImages is the annotation of a pod whose tags are followed: which image each of them means. The
// value is a JSON object of references by the names that the manifest gives.
const TagImages = "monopod.tag-images"

// TagImagesOf returns the references, by name; nil: there are none.
func TagImagesOf(pod *v1.Pod) (refs map[string]string) {
	text := pod.Annotations[TagImages]
	if text == "" || json.Unmarshal([]byte(text), &refs) != nil {
		return nil
	}
	delete(refs, restored)
	return refs
}

// restored stands among the names of TagImages in a version that no manifest gives as it is: a former
// one that came back with the images that it ran.
const restored = ""

// IsRestored reports whether a version of a pod that follows tags is such a former one.
func IsRestored(pod *v1.Pod) bool {
	var refs map[string]string
	_ = json.Unmarshal([]byte(pod.Annotations[TagImages]), &refs)
	return refs[restored] != ""
}

// MarkRestored marks a version as such a former one, if it follows tags.
func MarkRestored(pod *v1.Pod) {
	refs := TagImagesOf(pod)
	if refs == nil {
		return
	}
	refs[restored] = "true"
	text, err := json.Marshal(refs)
	if err != nil {
		panic(err) // a map of strings
	}
	pod.Annotations[TagImages] = string(text)
}

// WithTagImages returns a copy of a pod with these references.
func WithTagImages(pod *v1.Pod, refs map[string]string) *v1.Pod {
	out := pod.DeepCopy()
	delete(out.Annotations, TagImages)
	if len(refs) == 0 {
		return out
	}
	text, err := json.Marshal(refs)
	if err != nil {
		panic(err) // a map of strings
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[TagImages] = string(text)
	return out
}

// ImageNames returns the images that a pod names, each once and in order: those of its containers
// and of its image volumes.
func ImageNames(pod *v1.Pod) []string {
	names := map[string]bool{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names[c.Image] = true
	}
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil {
			names[v.Image.Reference] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
