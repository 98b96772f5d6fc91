package agent

import (
	"fmt"
	"hash/fnv"
	"regexp"

	"monopod/manifests"
)

// sighting is what a relist saw.
type sighting struct {
	// Pods holds a fingerprint per pod name that differs when anything about its
	// sandboxes or containers does.
	Pods map[manifests.Key]uint64
	// Fresh: the first after the runtime was away; anything may have happened.
	Fresh bool
}

// add takes one sandbox or container into its pod's fingerprint. The order in
// which they come does not matter.
func (s sighting) add(labels map[string]string, id string, state int32) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", id, state)
	s.Pods[keyOf(labels)] += h.Sum64()
}

// wellFormed reports whether the labels that tell the pod may name files. Ours
// always do; others can be made by whoever may talk to the runtime.
func wellFormed(labels map[string]string) bool {
	for _, l := range []string{labelPodNamespace, labelPodName, labelPodUID} {
		if !fileName.MatchString(labels[l]) {
			return false
		}
	}
	return true
}

// fileName is what names and uids are made of, less "." and "..".
var fileName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func keyOf(labels map[string]string) manifests.Key {
	return manifests.Key{Namespace: labels[labelPodNamespace], Name: labels[labelPodName]}
}
