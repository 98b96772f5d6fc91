package podspec

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// PostStart returns the container's postStart hook, or nil.
func PostStart(c *v1.Container) *v1.LifecycleHandler {
	if c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PostStart
}

// IsInit reports whether c is one of the pod's init containers.
func IsInit(pod *v1.Pod, c *v1.Container) bool {
	return IsInitName(pod, c.Name)
}

// RestartRule returns the action of the container's first restart rule that matches the
// exit code, "" if none does.
func RestartRule(c *v1.Container, code int32) v1.ContainerRestartRuleAction {
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		in := slices.Contains(r.ExitCodes.Values, code)
		if in == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
			return r.Action
		}
	}
	return ""
}

// OwnUsers reports whether the pod asks for a user namespace.
func OwnUsers(p *v1.Pod) bool { return p.Spec.HostUsers != nil && !*p.Spec.HostUsers }

// FindContainer returns the pod's container of this name. It panics if there is none: a plan names
// only containers that exist.
func FindContainer(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			if list[k].Name == name {
				return &list[k]
			}
		}
	}
	panic(fmt.Sprintf("pod %s/%s has no container %s", pod.Namespace, pod.Name, name))
}

// IsInitName reports whether an init container of the pod has this name.
func IsInitName(p *v1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name })
}
