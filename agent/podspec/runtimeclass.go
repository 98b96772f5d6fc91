package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// RuntimeHandler returns the runtime handler of the pod's runtime class; "" for a pod without one.
// classes are the handlers by class name.
func RuntimeHandler(p *v1.Pod, classes map[string]string) (string, error) {
	class := p.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	handler, ok := classes[*class]
	if !ok {
		return "", fmt.Errorf("runtime class %q is not configured on this node", *class)
	}
	return handler, nil
}
