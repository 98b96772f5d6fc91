package update

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/podspec"
	"monopod/manifests/poduid"
)

// masks remove from two versions what a change of each kind may change, each after the one before
// it. What still differs replaces the pod.
var masks = [...]func(c *comparison, a, b *v1.Pod){
	Nothing: (*comparison).leaveSame,
	Live:    (*comparison).leaveLive,
	Resize:  func(c *comparison, a, b *v1.Pod) { c.leaveAmounts(a, b, Resize) },
	Restart: (*comparison).leaveRestarts,
}

// leaveSame removes what has the same meaning: computed uids, which follow from the rest, and
// values that equal the default of a missing field.
func (c *comparison) leaveSame(a, b *v1.Pod) {
	if poduid.IsComputed(a.UID) && poduid.IsComputed(b.UID) {
		a.UID, b.UID = "", ""
	}
	unsay(a)
	unsay(b)
}

func unsay(p *v1.Pod) {
	drop(&p.Spec.HostUsers, true)
	drop(&p.Spec.ShareProcessNamespace, false)
	drop(&p.Spec.SetHostnameAsFQDN, false)
	for _, c := range podspec.AllContainers(p) {
		drop(&c.SecurityContext.AllowPrivilegeEscalation, true)
		drop(&c.SecurityContext.Privileged, false)
		drop(&c.SecurityContext.ReadOnlyRootFilesystem, false)
		drop(&c.SecurityContext.ProcMount, v1.DefaultProcMount)
		for i := range c.VolumeMounts {
			drop(&c.VolumeMounts[i].MountPropagation, v1.MountPropagationNone)
			drop(&c.VolumeMounts[i].RecursiveReadOnly, v1.RecursiveReadOnlyDisabled)
		}
	}
}

// drop sets a pointer to nil if its value means the same as nil.
func drop[T comparable](p **T, unset T) {
	if *p != nil && **p == unset {
		*p = nil
	}
}

// leaveLive removes what the agent reads when it needs it, and what no program on a node reads.
func (c *comparison) leaveLive(a, b *v1.Pod) {
	for _, p := range []*v1.Pod{a, b} {
		c.liveMeta(&p.ObjectMeta)
		liveSpec(&p.Spec)
		for i := range p.Spec.Containers {
			liveContainer(&p.Spec.Containers[i])
		}
	}
}

func (c *comparison) liveMeta(m *metav1.ObjectMeta) {
	//lint:ignore SA1019 manifests that were read from a cluster have it
	m.SelfLink = ""
	m.GenerateName, m.ResourceVersion, m.Generation, m.CreationTimestamp = "", "", 0, metav1.Time{}
	m.Labels, m.OwnerReferences, m.Finalizers = nil, nil, nil
	maps.DeleteFunc(m.Annotations, func(key, _ string) bool { return !c.isOfCreation(key) })
}

// atCreation are the prefixes of annotations that runtimes and their network plugins read when they
// create a sandbox or a container: a running one does not follow them.
var atCreation = []string{
	"kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth", "k8s.v1.cni.cncf.io/", "cni.projectcalico.org/",
	"io.kubernetes.cri", "io.containerd.", "io.katacontainers.", "cdi.k8s.io/", "blockio.resources.beta.kubernetes.io/",
	"rdt.resources.beta.kubernetes.io/", "cpu.resources.beta.kubernetes.io/",
	"memory.resources.beta.kubernetes.io/", "dev.gvisor.", "run.oci.",
}

// isOfCreation reports whether an annotation is read when the pod or a container of it is created.
func (c *comparison) isOfCreation(key string) bool {
	name, profile := strings.CutPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
	return slices.ContainsFunc(atCreation, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		strings.Contains(key, ".crio.io") || strings.Contains(key, ".cri-o.io") ||
		profile && (podspec.IsInitName(c.new, name) || containerOf(c.new, name) != nil)
}

func liveSpec(s *v1.PodSpec) {
	s.TerminationGracePeriodSeconds, s.ActiveDeadlineSeconds, s.ReadinessGates, s.ImagePullSecrets = nil, nil, nil, nil
	s.SchedulerName, s.EnableServiceLinks, s.PreemptionPolicy, s.Priority = "", nil, nil, nil
	s.AutomountServiceAccountToken, s.Tolerations, s.TopologySpreadConstraints = nil, nil, nil
}

// liveContainer: postStart has run, preStop is read when the container stops.
func liveContainer(c *v1.Container) {
	c.ImagePullPolicy, c.ResizePolicy = "", nil
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
	c.Lifecycle.PostStart, c.Lifecycle.PreStop = nil, nil
}

// leaveAmounts removes the cpu and memory that a change of kind k may change. It keeps requests and
// limits that only one version has.
func (c *comparison) leaveAmounts(a, b *v1.Pod, k Kind) {
	for i := range c.new.Spec.Containers {
		ct := &c.new.Spec.Containers[i] // with its resize policies
		x, y := containerOf(a, ct.Name), containerOf(b, ct.Name)
		if x == nil {
			continue
		}
		takes := func(name v1.ResourceName) bool { return c.resizing(ct, name) <= k }
		limits := func(name v1.ResourceName) bool { return takes(name) && !isLifted(x.Resources, y.Resources, name) }
		leaveOut(x.Resources.Limits, y.Resources.Limits, limits)
		leaveOut(x.Resources.Requests, y.Resources.Requests, takes)
	}
	if x, y := a.Spec.Resources, b.Spec.Resources; x != nil && y != nil {
		leaveOut(x.Requests, y.Requests, func(v1.ResourceName) bool { return true })
		leaveOut(x.Limits, y.Limits, func(name v1.ResourceName) bool {
			return !isLifted(*x, *y, name) && !slices.ContainsFunc(c.heirs(name), func(ct *v1.Container) bool { return c.resizing(ct, name) > k })
		})
	}
}

// isLifted reports whether a limit is 0 now, which is none. Of what runs a limit changes, and is not
// removed.
func isLifted(old, new v1.ResourceRequirements, name v1.ResourceName) bool {
	was, is := old.Limits[name], new.Limits[name]
	return !was.IsZero() && is.IsZero()
}

func leaveOut(old, new v1.ResourceList, takes func(v1.ResourceName) bool) {
	for _, name := range resizable {
		if _, stays := new[name]; stays && takes(name) {
			delete(old, name)
			delete(new, name)
		}
	}
}

var resizable = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}

// leaveRestarts removes what containers get when they start, for those that may restart.
func (c *comparison) leaveRestarts(a, b *v1.Pod) {
	c.leaveAmounts(a, b, Restart)
	for i := range b.Spec.Containers {
		y := &b.Spec.Containers[i]
		x := containerOf(a, y.Name)
		if x == nil || c.ends(y.Name) {
			continue
		}
		delete(a.Annotations, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+y.Name)
		delete(b.Annotations, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+y.Name)
		c.leaveOfSandbox(x, y)
		atStart(x)
		atStart(y)
	}
}

// leaveOfSandbox removes what containers get when they start, unless the sandbox has it, too: the
// host ports, and whether any container is privileged.
func (c *comparison) leaveOfSandbox(x, y *v1.Container) {
	if slices.Equal(hostPorts(x.Ports), hostPorts(y.Ports)) {
		x.Ports, y.Ports = nil, nil
	}
	if privileged(c.old) == privileged(c.new) {
		x.SecurityContext.Privileged, y.SecurityContext.Privileged = nil, nil
	}
}

func hostPorts(all []v1.ContainerPort) []v1.ContainerPort {
	var out []v1.ContainerPort
	for _, port := range all {
		if port.HostPort > 0 {
			port.Name = ""
			out = append(out, port)
		}
	}
	return out
}

func privileged(p *v1.Pod) bool {
	return slices.ContainsFunc(podspec.AllContainers(p), func(c *v1.Container) bool {
		s := c.SecurityContext
		return s != nil && s.Privileged != nil && *s.Privileged
	})
}

// atStart removes what a container gets when it starts, field by field: a new field of the API
// replaces the pod until it is added here.
func atStart(c *v1.Container) {
	c.Image, c.Command, c.Args, c.WorkingDir, c.Env, c.EnvFrom = "", nil, nil, "", nil, nil
	c.VolumeMounts, c.VolumeDevices, c.Stdin, c.StdinOnce, c.TTY = nil, nil, false, false, false
	c.RestartPolicy, c.RestartPolicyRules, c.TerminationMessagePath, c.TerminationMessagePolicy = nil, nil, "", ""
	c.Lifecycle.StopSignal = nil // the runtime has it
	s := c.SecurityContext
	s.Capabilities, s.SELinuxOptions, s.WindowsOptions, s.SeccompProfile, s.AppArmorProfile = nil, nil, nil, nil, nil
	s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot, s.ReadOnlyRootFilesystem = nil, nil, nil, nil
	s.AllowPrivilegeEscalation, s.ProcMount = nil, nil
}
