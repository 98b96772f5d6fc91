package podspec

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodSecurity returns the pod's security context, empty if it has none.
func PodSecurity(p *v1.Pod) *v1.PodSecurityContext {
	if p.Spec.SecurityContext == nil {
		return &v1.PodSecurityContext{}
	}
	return p.Spec.SecurityContext
}

// containerSecurityOf returns the container's own security context, empty if
// it has none.
func containerSecurityOf(c *v1.Container) *v1.SecurityContext {
	if c.SecurityContext == nil {
		return &v1.SecurityContext{}
	}
	return c.SecurityContext
}

// AllContainers returns the init containers, then the regular ones.
func AllContainers(p *v1.Pod) []*v1.Container {
	var out []*v1.Container
	for i := range p.Spec.InitContainers {
		out = append(out, &p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		out = append(out, &p.Spec.Containers[i])
	}
	return out
}

// supplementalGroups returns fsGroup, then the other groups.
func supplementalGroups(s *v1.PodSecurityContext) ([]int64, rt.SupplementalGroupsPolicy) {
	var groups []int64
	if s.FSGroup != nil {
		groups = append(groups, *s.FSGroup)
	}
	policy := rt.SupplementalGroupsPolicy_Merge
	if s.SupplementalGroupsPolicy != nil && *s.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		policy = rt.SupplementalGroupsPolicy_Strict
	}
	return slices.Concat(groups, s.SupplementalGroups), policy
}

func selinux(o *v1.SELinuxOptions) *rt.SELinuxOption {
	if o == nil {
		return nil
	}
	return &rt.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// appArmorAnnotation reads the old form of a profile; nil if it is empty or
// unknown.
func appArmorAnnotation(s string) *v1.AppArmorProfile {
	switch ref, local := strings.CutPrefix(s, v1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case s == v1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
	case s == v1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
	case local:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &ref}
	default:
		return nil
	}
}

// either returns a if it is set, else b.
func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func truth(b *bool) bool { return b != nil && *b }

func int64Value(v *int64) *rt.Int64Value {
	if v == nil {
		return nil
	}
	return &rt.Int64Value{Value: *v}
}

func words(in []v1.Capability) []string {
	var out []string
	for _, c := range in {
		out = append(out, string(c))
	}
	return out
}
