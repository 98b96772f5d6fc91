package poduid

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationHash is the kubelet's annotation of a static pod with the hash of its manifest.
const AnnotationHash = "kubernetes.io/config.hash"

// ContentHash is the value of AnnotationHash. A pod is created with it as its uid. When the pod is
// updated in place, the uid stays and the hash changes: do not use one for the other.
type ContentHash string

// HashOf returns the hash of a pod's present content.
func HashOf(p metav1.Object) ContentHash {
	return ContentHash(cmp.Or(p.GetAnnotations()[AnnotationHash], string(p.GetUID())))
}

// IsComputed reports whether a uid has the form of one computed from a manifest, as opposed to one
// set in it.
func IsComputed(uid types.UID) bool {
	return len(uid) == 32 && strings.Trim(string(uid), "0123456789abcdef") == ""
}

// Derived returns what has the form of a computed uid, or of a hash, and follows from one and from a
// text.
func Derived(from, text string) string {
	sum := sha256.Sum256([]byte(from + "\x00" + text))
	return hex.EncodeToString(sum[:16])
}
