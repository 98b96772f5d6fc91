package pleg

import (
	"hash/maphash"
	"strings"

	"monopod/agent/podspec"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Relist is the result of a relist.
type Relist struct {
	// Pods has a fingerprint for each pod name, which changes when its sandboxes or containers do.
	// The receiver owns it; nil: all are as in the relist before.
	Pods map[manifests.Key]uint64
	// Fresh: anything may have changed, as after the runtime was down.
	Fresh bool
}

// fingerprint returns a number that changes when a sandbox or container is added or removed, or
// changes its state. The order of the list does not matter.
func (p *Listed) fingerprint() uint64 {
	var sum uint64
	for _, s := range p.Sandboxes {
		sum += maphash.Comparable(printSeed, stated{s.Id, int32(s.State)})
	}
	for _, c := range p.Containers {
		sum += maphash.Comparable(printSeed, stated{c.Id, int32(c.State)})
	}
	return sum
}

// stated is the part of a sandbox or container that goes into a fingerprint.
type stated struct {
	id    string
	state int32
}

var printSeed = maphash.MakeSeed()

// wellFormed reports whether the pod's labels may be used in file names. The agent's labels always
// may; other clients of the runtime can set any labels.
func wellFormed(labels map[string]string) bool {
	return isFileName(labels[podspec.LabelPodNamespace]) && isFileName(labels[podspec.LabelPodName]) && poduid.Valid(labels[podspec.LabelPodUID])
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isFileName reports whether a name may be that of a pod or container: letters and digits, with "."
// and "-" between them. It is called for every item of each listing.
func isFileName(name string) bool {
	return name != "" && strings.Trim(name, ".-") == name && strings.Trim(name, alphanumeric+".-") == ""
}

// KeyOf returns the pod name in the labels.
func KeyOf(labels map[string]string) manifests.Key {
	return manifests.Key{Namespace: labels[podspec.LabelPodNamespace], Name: labels[podspec.LabelPodName]}
}
