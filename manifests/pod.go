// Package manifests is the desired state: it reads Pod manifests from a folder,
// gives them the identity and the defaults that a kubelet would give them,
// reports problems with file, line and column, and offers complete snapshots of
// the desired pods.
package manifests

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests/decode"
)

// Key names a pod: its namespace and its name with the node suffix. Its String
// is "namespace/name".
type Key = types.NamespacedName

// KeyOf returns the key of a pod whose identity is set.
func KeyOf(p *v1.Pod) Key { return Key{Namespace: p.Namespace, Name: p.Name} }

// Pod is one accepted pod and where it came from. Its v1.Pod is defaulted and
// has its identity; it is shared and must not be changed.
type Pod struct {
	*v1.Pod
	// File is the absolute path of the manifest.
	File string
	// Digest is the hex FNV-128a of the canonical JSON of the defaulted
	// manifest without its identity: same digest, same pod. It holds for one
	// build only, see Restored.
	Digest string
}

// Key returns the pod's key.
func (p *Pod) Key() Key { return KeyOf(p.Pod) }

// File is what one file of the folder gives.
type File struct {
	Path     string           `json:"path"`
	Pods     []string         `json:"pods,omitempty"`     // namespace/name of the pods it gives
	Held     bool             `json:"held,omitempty"`     // an earlier version runs on, the present one was refused
	Problems []decode.Problem `json:"problems,omitempty"` // in order of line
	// Orders are the places of the StartAfter annotations in the file, by
	// namespace/name of the pods that have one.
	Orders map[string]decode.Position `json:"-"`
}

// Snapshot is all desired pods, as one complete set.
type Snapshot struct {
	// Pods are the desired pods, sorted by key. A pod that the Source once knew
	// and that is absent here is proven gone.
	Pods []*Pod
	// Files are all manifests of the folder, sorted by path.
	Files []File
	// Problems are those of the folder itself.
	Problems []decode.Problem
	// Read is true once the folder was listed and each file in it read, as far as
	// that is possible: problems of a file are in its Problems.
	Read bool
	// Complete is false while the folder, or a file whose pods are not known,
	// cannot be read, or the folder may be another than the one that pods came
	// from: then no pod that the Source never knew is gone either.
	Complete bool
}

// Same reports whether two desired pods are the same: both none, or the same
// content under the same uid.
func Same(a, b *Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.UID == b.UID
}
