package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/defaults"
)

// hostPort is a port of the machine that only one container of a pod can use.
type hostPort struct {
	protocol v1.Protocol
	ip       string
	port     int32
}

// containers checks the regular and the init containers.
func (c *checker) containers(p *field.Path) {
	names, ports := map[string]bool{}, map[hostPort]bool{}
	q := p.Child("containers")
	c.required(len(c.spec.Containers) > 0, q, "a pod needs at least one container")
	for i := range c.spec.Containers {
		c.container(&c.spec.Containers[i], q.Index(i), names, ports)
		c.probesAndHooks(&c.spec.Containers[i], q.Index(i))
	}
	q = p.Child("initContainers")
	for i := range c.spec.InitContainers {
		ic := &c.spec.InitContainers[i]
		c.container(ic, q.Index(i), names, map[hostPort]bool{})
		if defaults.IsSidecar(ic) {
			c.probesAndHooks(ic, q.Index(i))
		} else if c.read(q.Index(i).Child("restartPolicy")) {
			c.onlySidecars(ic, q.Index(i))
		}
	}
}

// onlySidecars refuses fields that only sidecars may have among the init containers.
func (c *checker) onlySidecars(ic *v1.Container, p *field.Path) {
	const text = "may not be set for init containers without restartPolicy=Always"
	c.forbid(ic.Lifecycle != nil, p.Child("lifecycle"), text)
	c.forbid(ic.LivenessProbe != nil, p.Child("livenessProbe"), text)
	c.forbid(ic.ReadinessProbe != nil, p.Child("readinessProbe"), text)
	c.forbid(ic.StartupProbe != nil, p.Child("startupProbe"), text)
}

// container checks the fields that all containers have.
func (c *checker) container(ct *v1.Container, p *field.Path, names map[string]bool, ports map[hostPort]bool) {
	c.label(p.Child("name"), ct.Name)
	if ct.Name != "" {
		unique(c, names, p.Child("name"), ct.Name)
	}
	if c.required(ct.Image != "", p.Child("image"), "a container needs an image") && strings.TrimSpace(ct.Image) != ct.Image {
		c.add(field.Invalid(p.Child("image"), ct.Image, "must not have leading or trailing whitespace"))
	} else {
		c.image(p.Child("image"), ct.Image)
	}
	oneOf(c, p.Child("imagePullPolicy"), ct.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)
	c.noBackstep(p.Child("terminationMessagePath"), ct.TerminationMessagePath)
	oneOf(c, p.Child("terminationMessagePolicy"), ct.TerminationMessagePolicy, v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)
	c.ports(p.Child("ports"), ct.Ports, ports)
	c.env(p, ct)
	c.expansions(p, ct)
	c.mounts(p, ct)
	c.resources(p.Child("resources"), &ct.Resources)
	c.resizePolicy(p.Child("resizePolicy"), ct.ResizePolicy)
	c.containerSecurity(p.Child("securityContext"), ct)
	c.restartRules(p, ct)
	c.futile(p, ct)
}

// ports checks a container's ports; taken are the host ports of the containers before.
func (c *checker) ports(p *field.Path, list []v1.ContainerPort, taken map[hostPort]bool) {
	names := map[string]bool{}
	for i, port := range list {
		q := p.Index(i)
		if port.Name != "" {
			c.portName(q.Child("name"), port.Name)
			unique(c, names, q.Child("name"), port.Name)
		}
		if c.required(port.ContainerPort != 0, q.Child("containerPort"), "") {
			within(c, q.Child("containerPort"), port.ContainerPort, 1, 65535)
		}
		within(c, q.Child("hostPort"), port.HostPort, 0, 65535)
		oneOf(c, q.Child("protocol"), port.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)
		if port.HostIP != "" {
			c.ip(q.Child("hostIP"), port.HostIP)
		}
		if port.HostPort == 0 || !c.read(q.Child("containerPort"), q.Child("hostIP"), q.Child("protocol")) {
			continue
		}
		key := hostPort{port.Protocol, port.HostIP, port.HostPort}
		if taken[key] {
			c.add(field.Duplicate(q.Child("hostPort"), port.HostPort))
		}
		taken[key] = true
		if c.spec.HostNetwork && port.HostPort != port.ContainerPort {
			c.add(field.Invalid(q.Child("hostPort"), port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
		}
	}
}

// resizePolicy checks the resize policy of a container.
func (c *checker) resizePolicy(p *field.Path, list []v1.ContainerResizePolicy) {
	seen := map[string]bool{}
	for i, r := range list {
		q := p.Index(i)
		oneOf(c, q.Child("resourceName"), r.ResourceName, v1.ResourceCPU, v1.ResourceMemory)
		oneOf(c, q.Child("restartPolicy"), r.RestartPolicy, v1.NotRequired, v1.RestartContainer)
		unique(c, seen, q.Child("resourceName"), string(r.ResourceName))
	}
}

// restartRules checks a container's own restart policy.
func (c *checker) restartRules(p *field.Path, ct *v1.Container) {
	if ct.RestartPolicy != nil {
		oneOf(c, p.Child("restartPolicy"), *ct.RestartPolicy, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
	}
	q := p.Child("restartPolicyRules")
	if len(ct.RestartPolicyRules) > 0 && ct.RestartPolicy == nil {
		c.add(field.Required(p.Child("restartPolicy"), "must be set when restartPolicyRules are"))
	}
	if len(ct.RestartPolicyRules) > 20 {
		c.add(field.TooMany(q, len(ct.RestartPolicyRules), 20))
	}
	for i, rule := range ct.RestartPolicyRules {
		r := q.Index(i)
		oneOf(c, r.Child("action"), rule.Action, v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)
		if !c.required(rule.ExitCodes != nil, r.Child("exitCodes"), "") {
			continue
		}
		oneOf(c, r.Child("exitCodes", "operator"), rule.ExitCodes.Operator, v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(rule.ExitCodes.Values); n > 255 {
			c.add(field.TooMany(r.Child("exitCodes", "values"), n, 255))
		}
	}
}

// containerSecurity checks a container's security context.
func (c *checker) containerSecurity(p *field.Path, ct *v1.Container) {
	sc := ct.SecurityContext
	if sc == nil {
		return
	}
	c.ids(p, map[string]*int64{"runAsUser": sc.RunAsUser, "runAsGroup": sc.RunAsGroup})
	c.forbid(sc.WindowsOptions != nil && isLinux(c.spec), p.Child("windowsOptions"), "windows options cannot be set for a linux pod")
	c.seccomp(p.Child("seccompProfile"), sc.SeccompProfile)
	c.appArmor(p.Child("appArmorProfile"), sc.AppArmorProfile)
	if sc.ProcMount != nil {
		q := p.Child("procMount")
		oneOf(c, q, *sc.ProcMount, v1.DefaultProcMount, v1.UnmaskedProcMount)
		hostUsers := (c.spec.HostUsers == nil || *c.spec.HostUsers) && c.read(field.NewPath("spec", "hostUsers"))
		if *sc.ProcMount == v1.UnmaskedProcMount && hostUsers {
			c.add(field.Invalid(q, *sc.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		return
	}
	q := p.Child("allowPrivilegeEscalation")
	if isTrue(sc.Privileged) {
		c.add(field.Invalid(q, false, "cannot be false when `privileged` is true"))
	}
	if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
		c.add(field.Invalid(q, false, "cannot be false when `capabilities.add` has CAP_SYS_ADMIN"))
	}
}
