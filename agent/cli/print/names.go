package print

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ShortName is the pod's name as its manifest has it, without the node.
func ShortName(p *v1.Pod) string {
	if p.Spec.NodeName == "" {
		return p.Name
	}
	if short := strings.TrimSuffix(p.Name, "-"+strings.ToLower(p.Spec.NodeName)); short != "" {
		return short
	}
	return p.Name
}
