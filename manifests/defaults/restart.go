package defaults

import v1 "k8s.io/api/core/v1"

// RestartPolicyOf returns a container's own restart policy, else the pod's.
func RestartPolicyOf(p *v1.Pod, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		return v1.RestartPolicy(*c.RestartPolicy)
	}
	return p.Spec.RestartPolicy
}

// IsSidecar reports whether an init container runs alongside the regular ones.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
