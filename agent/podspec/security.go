package podspec

import (
	"errors"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maskedPaths are the kernel's files that an unprivileged container must not see,
// readonlyPaths those that it must not write: the kubelet's defaults.
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

func namespaces(p *v1.Pod) *rt.NamespaceOption {
	o := &rt.NamespaceOption{
		Pid:           rt.NamespaceMode_CONTAINER,
		UsernsOptions: &rt.UserNamespace{Mode: rt.NamespaceMode_NODE},
	}
	if p.Spec.HostNetwork {
		o.Network = rt.NamespaceMode_NODE
	}
	if p.Spec.HostIPC {
		o.Ipc = rt.NamespaceMode_NODE
	}
	switch share := p.Spec.ShareProcessNamespace; {
	case p.Spec.HostPID:
		o.Pid = rt.NamespaceMode_NODE
	case share != nil && *share:
		o.Pid = rt.NamespaceMode_POD
	}
	return o
}

func sandboxSecurity(p *v1.Pod) *rt.LinuxSandboxSecurityContext {
	s := PodSecurity(p)
	groups, policy := supplementalGroups(s)
	return &rt.LinuxSandboxSecurityContext{
		NamespaceOptions:         namespaces(p),
		Privileged:               slices.ContainsFunc(AllContainers(p), func(c *v1.Container) bool { return truth(containerSecurityOf(c).Privileged) }),
		Seccomp:                  &rt.SecurityProfile{ProfileType: rt.SecurityProfile_RuntimeDefault},
		SelinuxOptions:           selinux(s.SELinuxOptions),
		RunAsUser:                int64Value(s.RunAsUser),
		RunAsGroup:               int64Value(s.RunAsGroup),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
	}
}

// containerSecurity merges the security contexts of pod and container; the container's fields have
// precedence.
func containerSecurity(p *v1.Pod, c *v1.Container, in Input, n *Host) (*rt.LinuxContainerSecurityContext, error) {
	pod, own := PodSecurity(p), containerSecurityOf(c)
	seccomp, err := seccompProfile(either(own.SeccompProfile, pod.SeccompProfile), n)
	if err != nil {
		return nil, err
	}
	groups, policy := supplementalGroups(pod)
	out := &rt.LinuxContainerSecurityContext{
		Privileged:               truth(own.Privileged),
		NamespaceOptions:         namespaces(p),
		SelinuxOptions:           selinux(either(own.SELinuxOptions, pod.SELinuxOptions)),
		RunAsUser:                int64Value(either(own.RunAsUser, pod.RunAsUser)),
		RunAsGroup:               int64Value(either(own.RunAsGroup, pod.RunAsGroup)),
		ReadonlyRootfs:           truth(own.ReadOnlyRootFilesystem),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
		NoNewPrivs:               own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		Seccomp:                  seccomp,
	}
	if out.RunAsUser == nil && in.ImageUID == nil {
		out.RunAsUsername = in.ImageUsername
	} else if out.RunAsUser == nil {
		out.RunAsUser = int64Value(in.ImageUID)
	}
	if own.ProcMount == nil || *own.ProcMount != v1.UnmaskedProcMount {
		out.MaskedPaths = append(maskedPaths(), n.MaskedPaths...)
		out.ReadonlyPaths = readonlyPaths()
	}
	if own.Capabilities != nil {
		out.Capabilities = &rt.Capability{
			AddCapabilities:  words(own.Capabilities.Add),
			DropCapabilities: words(own.Capabilities.Drop),
		}
	}
	//lint:ignore SA1019 older runtimes read only this field, and the kubelet sends both
	out.Apparmor, out.ApparmorProfile = AppArmor(p, c)
	return out, nil
}

// checkNonRoot refuses a container with runAsNonRoot that would, or might, run as
// root.
func checkNonRoot(p *v1.Pod, c *v1.Container, in Input) error {
	pod, own := PodSecurity(p), containerSecurityOf(c)
	if !truth(either(own.RunAsNonRoot, pod.RunAsNonRoot)) {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", fmt.Sprintf("%s_%s(%s)", p.Name, p.Namespace, p.UID), c.Name)
	user := either(own.RunAsUser, pod.RunAsUser)
	switch {
	case user != nil && *user == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
	case user != nil:
		return nil
	case in.ImageUID == nil && in.ImageUsername != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", in.ImageUsername, where)
	case in.ImageUID == nil || *in.ImageUID == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	case *in.ImageUID < 0 || *in.ImageUID > math.MaxInt32:
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(2147483647)): %s", *in.ImageUID, where)
	}
	return nil
}

func seccompProfile(s *v1.SeccompProfile, n *Host) (*rt.SecurityProfile, error) {
	switch {
	case s == nil && n.SeccompDefault:
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_RuntimeDefault}, nil
	case s == nil, s.Type == v1.SeccompProfileTypeUnconfined:
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_Unconfined}, nil
	case s.Type == v1.SeccompProfileTypeRuntimeDefault:
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_RuntimeDefault}, nil
	case s.Type == v1.SeccompProfileTypeLocalhost && s.LocalhostProfile != nil && *s.LocalhostProfile != "":
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_Localhost, LocalhostRef: seccompPath(n.Root, *s.LocalhostProfile)}, nil
	case s.Type == v1.SeccompProfileTypeLocalhost:
		return nil, errors.New("localhostProfile must be set if seccompProfile type is Localhost")
	default:
		return nil, fmt.Errorf("unknown seccompProfile type %q", s.Type)
	}
}

// AppArmor returns the container's profile in the present and in the deprecated form: from its
// field, or its annotation, or the pod's field.
func AppArmor(p *v1.Pod, c *v1.Container) (*rt.SecurityProfile, string) {
	profile := containerSecurityOf(c).AppArmorProfile
	if profile == nil {
		profile = appArmorAnnotation(p.Annotations[annAppArmorContainer+c.Name])
	}
	if profile == nil {
		profile = PodSecurity(p).AppArmorProfile
	}
	if profile == nil {
		return nil, ""
	}
	switch profile.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_RuntimeDefault}, v1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case v1.AppArmorProfileTypeUnconfined:
		return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_Unconfined}, v1.DeprecatedAppArmorBetaProfileNameUnconfined
	case v1.AppArmorProfileTypeLocalhost:
		if ref := profile.LocalhostProfile; ref != nil {
			return &rt.SecurityProfile{ProfileType: rt.SecurityProfile_Localhost, LocalhostRef: *ref}, v1.DeprecatedAppArmorBetaProfileNamePrefix + *ref
		}
	}
	return nil, ""
}
