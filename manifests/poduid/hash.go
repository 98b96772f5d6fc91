package poduid

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationHash is the kubelet's annotation of a static pod with the hash of its manifest.
const AnnotationHash = "kubernetes.io/config.hash"

// ContentHash is what AnnotationHash says. A pod is created with it as its uid, keeps that
// uid when it changes in place, and has another hash then: neither stands for the other.
type ContentHash string

// HashOf returns the hash of the content that a pod has now.
func HashOf(p metav1.Object) ContentHash {
	return ContentHash(cmp.Or(p.GetAnnotations()[AnnotationHash], string(p.GetUID())))
}

// IsComputed reports whether a uid looks like one that was computed of a manifest, rather
// than said by it.
func IsComputed(uid types.UID) bool {
	return len(uid) == 32 && strings.Trim(string(uid), "0123456789abcdef") == ""
}
