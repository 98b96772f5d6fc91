package agent

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// features are what the runtime said it can do. The zero value is a runtime
// that says nothing, as old ones do.
type features struct {
	strictGroups      bool            // it heeds supplementalGroupsPolicy
	recursiveReadOnly map[string]bool // by handler; "" is the default one
}

func featuresOf(s *rt.StatusResponse) features {
	f := features{strictGroups: s.GetFeatures().GetSupplementalGroupsPolicy(), recursiveReadOnly: map[string]bool{}}
	for _, h := range s.GetRuntimeHandlers() {
		f.recursiveReadOnly[h.Name] = h.GetFeatures().GetRecursiveReadOnlyMounts()
	}
	return f
}

// Features returns what the runtime can do, as it said last.
func (w *watch) Features() features {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.can
}

// runtimeHandler returns the handler that the pod's runtime class stands for,
// "" for a pod without one.
func runtimeHandler(p *v1.Pod, n *node) (string, error) {
	class := p.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	handler, ok := n.RuntimeClasses[*class]
	if !ok {
		return "", fmt.Errorf("runtime class %q is not configured on this node", *class)
	}
	return handler, nil
}

// checkFeatures refuses a pod that asks for what the runtime would silently
// not do. The reason and its words are the kubelet's.
func checkFeatures(p *v1.Pod, f features) error {
	_, policy := supplementalGroups(podSecurity(p))
	if policy == rt.SupplementalGroupsPolicy_Strict && !f.strictGroups {
		return because("SupplementalGroupsPolicyNotSupported", fmt.Errorf("SupplementalGroupsPolicy=Strict is not supported in this node"))
	}
	return nil
}
