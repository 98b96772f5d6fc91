package pleg

import (
	"fmt"
	"hash/fnv"
	"regexp"

	"monopod/agent/podspec"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Relist is what a relist saw.
type Relist struct {
	// Pods holds a fingerprint per pod name that differs when anything about its
	// sandboxes or containers does.
	Pods map[manifests.Key]uint64
	// Fresh: the first after the runtime was away; anything may have happened.
	Fresh bool
}

// fingerprint differs when a sandbox or container comes, goes or changes its
// state. The order in which they are listed does not matter.
func (p *Listed) fingerprint() uint64 {
	var sum uint64
	add := func(id string, state int32) {
		// The state comes first: what comes last is hardly mixed, and the changes of
		// containers that change their state together would make up for each other.
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", state, id)
		sum += h.Sum64()
	}
	for _, s := range p.Sandboxes {
		add(s.Id, int32(s.State))
	}
	for _, c := range p.Containers {
		add(c.Id, int32(c.State))
	}
	return sum
}

// wellFormed reports whether the labels that tell the pod may name files. Ours
// always do; others can be made by whoever may talk to the runtime.
func wellFormed(labels map[string]string) bool {
	return fileName.MatchString(labels[podspec.LabelPodNamespace]) && fileName.MatchString(labels[podspec.LabelPodName]) && poduid.Valid(labels[podspec.LabelPodUID])
}

// fileName is what names are made of, less "." and "..".
var fileName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func KeyOf(labels map[string]string) manifests.Key {
	return manifests.Key{Namespace: labels[podspec.LabelPodNamespace], Name: labels[podspec.LabelPodName]}
}
