package annotations

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/manifests/decode"
)

// Annotations that order the starts of pods.
const (
	// StartAfter names the pods that must be ready before this one starts, separated by commas:
	// "name" in its own namespace, "namespace/name" in another. Names are those of the manifests,
	// without the node suffix.
	StartAfter = "monopod.start-after"
	// StartAfterTimeout is how long the pod waits for them at most, such as 90s.
	StartAfterTimeout = "monopod.start-after-timeout"
	// StartAfterField is the field in which problems with StartAfter are reported.
	StartAfterField = "metadata.annotations[" + StartAfter + "]"
)

// Order is what a pod waits for before it starts.
type Order struct {
	After   []types.NamespacedName // names as the manifest has them
	Timeout time.Duration          // after which the pod starts anyway; 0: never
}

// OrderOf returns the order of an accepted pod; the zero Order if it has none.
func OrderOf(p *v1.Pod) Order {
	var o Order
	text, ok := p.Annotations[StartAfter]
	if !ok {
		return o
	}
	for _, name := range strings.Split(text, ",") {
		if key, bad := PodReference(p.Namespace, name); len(bad) == 0 {
			o.After = append(o.After, key)
		}
	}
	o.Timeout, _ = OrderTimeout(p.Annotations[StartAfterTimeout])
	return o
}

// PodReference parses "name" or "namespace/name". It also returns the problems of the text.
func PodReference(namespace, text string) (types.NamespacedName, []string) {
	key := types.NamespacedName{Namespace: namespace, Name: strings.TrimSpace(text)}
	var bad []string
	if ns, name, ok := strings.Cut(key.Name, "/"); ok {
		key = types.NamespacedName{Namespace: ns, Name: name}
		bad = validation.IsDNS1123Label(ns)
	}
	return key, append(bad, decode.ValidateName(key.Name)...)
}

// OrderTimeout parses a duration above 0.
func OrderTimeout(text string) (d time.Duration, ok bool) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, false
	}
	return d, true
}
