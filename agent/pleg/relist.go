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
	// Pods holds a fingerprint per pod name, which changes when its sandboxes or
	// containers do. It is the receiver's; nil: all are as in the relist before.
	Pods map[manifests.Key]uint64
	// Fresh: anything may have changed, as after the runtime was down.
	Fresh bool
}

// fingerprint changes when a sandbox or container comes, goes or changes its
// state. The order of the list does not matter.
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

// stated is what a fingerprint has of a sandbox or container.
type stated struct {
	id    string
	state int32
}

var printSeed = maphash.MakeSeed()

// wellFormed reports whether the pod's labels may name files. The agent's always
// may; other clients of the runtime can set any.
func wellFormed(labels map[string]string) bool {
	return isFileName(labels[podspec.LabelPodNamespace]) && isFileName(labels[podspec.LabelPodName]) && poduid.Valid(labels[podspec.LabelPodUID])
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isFileName reports whether a name may be that of a pod or container: letters and digits,
// with "." and "-" between them. Each listing asks it of all that is listed.
func isFileName(name string) bool {
	return name != "" && strings.Trim(name, ".-") == name && strings.Trim(name, alphanumeric+".-") == ""
}

// KeyOf returns the pod name in the labels.
func KeyOf(labels map[string]string) manifests.Key {
	return manifests.Key{Namespace: labels[podspec.LabelPodNamespace], Name: labels[podspec.LabelPodName]}
}
