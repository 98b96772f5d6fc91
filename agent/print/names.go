package print

import (
	"cmp"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ShortName returns the pod's name as in its manifest, without the node.
func ShortName(p *v1.Pod) string { return short(p.Name, p.Spec.NodeName) }

// short returns the name of a pod without the node that it runs on.
func short(name, node string) string {
	if node == "" {
		return name
	}
	return cmp.Or(strings.TrimSuffix(name, "-"+strings.ToLower(node)), name)
}
