// Package documents reads the documents of one file into pods with the identity and the defaults
// that a kubelet would give them, and reports problems with their positions.
package documents

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a pod: its namespace and its name with the node suffix. Its String
// is "namespace/name".
type Key = types.NamespacedName

// KeyOf returns the key of a pod whose identity is set.
func KeyOf(p *v1.Pod) Key { return Key{Namespace: p.Namespace, Name: p.Name} }

// Pod is one accepted pod and its source. Its v1.Pod has its defaults and its identity; it is
// shared and must not be changed.
type Pod struct {
	*v1.Pod
	// File is the absolute path of the manifest.
	File string
	// Digest is the hex FNV-128a of the canonical JSON of the manifest with defaults and without
	// its identity: same digest, same pod. It is valid for one build only, see Restored.
	Digest string
	// Unbounded is set for a version that a former monopod accepted, which did not limit the files
	// that are made for a pod: its files are made whatever their size.
	Unbounded bool
}

// Key returns the pod's key.
func (p *Pod) Key() Key { return KeyOf(p.Pod) }

// In returns the pod as given by the file at path.
func (p *Pod) In(path string) *Pod {
	if p.File == path {
		return p
	}
	moved := *p
	moved.File = path
	return &moved
}
