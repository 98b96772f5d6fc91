package validate

import (
	"net/netip"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

const maxInt31 = 1<<31 - 1

// podSpec checks the direct fields of the spec.
func (c *checker) podSpec(p *field.Path) {
	s := c.spec
	oneOf(c, p.Child("restartPolicy"), s.RestartPolicy, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	if s.NodeName != "" {
		c.invalid(p.Child("nodeName"), s.NodeName, validation.IsDNS1123Subdomain(s.NodeName))
		c.otherNode(p.Child("nodeName"))
	}
	if d := s.ActiveDeadlineSeconds; d != nil {
		within(c, p.Child("activeDeadlineSeconds"), *d, 1, maxInt31)
	}
	if s.OS != nil {
		oneOf(c, p.Child("os", "name"), s.OS.Name, v1.Linux, v1.Windows)
		if s.OS.Name == v1.Windows {
			c.warn(p.Child("os", "name"), "this machine runs linux: the pod fails at once; write linux, or leave os out")
		}
	}
	c.forbid(len(s.SchedulingGates) > 0, p.Child("schedulingGates"), "nothing opens the gates of a static pod")
	c.forbid(len(s.EphemeralContainers) > 0, p.Child("ephemeralContainers"), "cannot be set on create")
	for i, g := range s.ReadinessGates {
		c.invalid(p.Child("readinessGates").Index(i).Child("conditionType"), string(g.ConditionType), validation.IsQualifiedName(string(g.ConditionType)))
	}
	if s.PreemptionPolicy != nil {
		oneOf(c, p.Child("preemptionPolicy"), *s.PreemptionPolicy, v1.PreemptLowerPriority, v1.PreemptNever)
	}
}

// network checks names and addresses.
func (c *checker) network(p *field.Path) {
	s := c.spec
	oneOf(c, p.Child("dnsPolicy"), s.DNSPolicy, v1.DNSClusterFirstWithHostNet, v1.DNSClusterFirst, v1.DNSDefault, v1.DNSNone)
	for _, f := range []struct{ name, value string }{{"hostname", s.Hostname}, {"subdomain", s.Subdomain}} {
		if f.value != "" {
			c.invalid(p.Child(f.name), f.value, validation.IsDNS1123Label(f.value))
		}
	}
	c.hostnameOverride(p.Child("hostnameOverride"))
	for i, a := range s.HostAliases {
		q := p.Child("hostAliases").Index(i)
		c.ip(q.Child("ip"), a.IP)
		for j, name := range a.Hostnames {
			c.invalid(q.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))
		}
	}
	c.dns(p.Child("dnsConfig"))
}

func (c *checker) hostnameOverride(p *field.Path) {
	s := c.spec
	if s.HostnameOverride == nil {
		return
	}
	name := *s.HostnameOverride
	c.invalid(p, name, validation.IsDNS1123Subdomain(name))
	if len(name) > 64 {
		c.add(field.TooLong(p, name, 64))
	}
	c.forbid(s.HostNetwork, p, "may not be set with hostNetwork")
	c.forbid(isTrue(s.SetHostnameAsFQDN), p, "may not be set with setHostnameAsFQDN")
}

func (c *checker) ip(p *field.Path, value string) {
	if a, err := netip.ParseAddr(value); err != nil || a.Zone() != "" {
		c.add(field.Invalid(p, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
	}
}

func (c *checker) dns(p *field.Path) {
	d := c.spec.DNSConfig
	if d == nil {
		d = &v1.PodDNSConfig{}
	}
	if c.spec.DNSPolicy == v1.DNSNone && len(d.Nameservers) == 0 {
		c.add(field.Required(p.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if len(d.Nameservers) > 3 {
		c.add(field.TooMany(p.Child("nameservers"), len(d.Nameservers), 3))
	}
	for i, n := range d.Nameservers {
		c.ip(p.Child("nameservers").Index(i), n)
	}
	if len(d.Searches) > 32 {
		c.add(field.TooMany(p.Child("searches"), len(d.Searches), 32))
	}
	if joined := strings.Join(d.Searches, " "); len(joined) > 2048 {
		c.add(field.Invalid(p.Child("searches"), joined, "must not have more than 2048 characters in all"))
	}
	for i, s := range d.Searches {
		if s != "." {
			c.invalid(p.Child("searches").Index(i), s, validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(s, ".")))
		}
	}
	for i, o := range d.Options {
		c.required(o.Name != "", p.Child("options").Index(i).Child("name"), "")
	}
}

// podSecurity checks namespaces, ids, sysctls and profiles of the pod.
func (c *checker) podSecurity(p *field.Path) {
	s := c.spec
	c.forbid(isTrue(s.ShareProcessNamespace) && s.HostPID, p.Child("shareProcessNamespace"), "ShareProcessNamespace and HostPID cannot both be enabled")
	if s.HostUsers != nil && !*s.HostUsers {
		q := p.Child("hostUsers")
		c.forbid(s.HostNetwork, q, "when `hostUsers` is false, `hostNetwork` may not be true")
		c.forbid(s.HostPID, q, "when `hostUsers` is false, `hostPID` may not be true")
		c.forbid(s.HostIPC, q, "when `hostUsers` is false, `hostIPC` may not be true")
	}
	q, sc := p.Child("securityContext"), s.SecurityContext
	if sc == nil {
		return
	}
	c.ids(q, map[string]*int64{"runAsUser": sc.RunAsUser, "runAsGroup": sc.RunAsGroup, "fsGroup": sc.FSGroup})
	for i, g := range sc.SupplementalGroups {
		within(c, q.Child("supplementalGroups").Index(i), g, 0, maxInt31)
	}
	c.forbid(sc.WindowsOptions != nil && isLinux(s), q.Child("windowsOptions"), "windows options cannot be set for a linux pod")
	if sc.SELinuxChangePolicy != nil {
		oneOf(c, q.Child("seLinuxChangePolicy"), *sc.SELinuxChangePolicy, v1.SELinuxChangePolicyRecursive, v1.SELinuxChangePolicyMountOption)
	}
	if sc.SupplementalGroupsPolicy != nil {
		oneOf(c, q.Child("supplementalGroupsPolicy"), *sc.SupplementalGroupsPolicy, v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict)
	}
	if sc.FSGroupChangePolicy != nil {
		oneOf(c, q.Child("fsGroupChangePolicy"), *sc.FSGroupChangePolicy, v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch)
	}
	c.seccomp(q.Child("seccompProfile"), sc.SeccompProfile)
	c.appArmor(q.Child("appArmorProfile"), sc.AppArmorProfile)
	c.sysctls(q.Child("sysctls"), sc.Sysctls)
	c.legacyProfiles()
}

// sysctls checks the kernel settings of the pod.
func (c *checker) sysctls(p *field.Path, list []v1.Sysctl) {
	if len(list) == 0 {
		return
	}
	segment := `[a-z0-9]([-_a-z0-9]*[a-z0-9])?`
	shape := regexp.MustCompile(`^` + segment + `([./]` + segment + `)*$`)
	seen := map[string]bool{}
	for i, s := range list {
		q := p.Index(i).Child("name")
		if !c.required(s.Name != "", q, "") {
			continue
		}
		space := decode.SysctlNamespace(s.Name)
		if len(s.Name) > 253 || !shape.MatchString(s.Name) {
			c.add(field.Invalid(q, s.Name, "must have at most 253 characters and match "+shape.String()))
		}
		unique(c, seen, q, s.Name)
		c.forbid(c.spec.HostNetwork && space == "Net", q, "may not be set when hostNetwork is true")
		c.forbid(c.spec.HostIPC && space == "IPC", q, "may not be set when hostIPC is true")
	}
}

// ids checks user and group ids.
func (c *checker) ids(p *field.Path, ids map[string]*int64) {
	for name, id := range ids {
		if id != nil {
			within(c, p.Child(name), *id, 0, maxInt31)
		}
	}
}

// seccomp checks a profile: Localhost and only Localhost names a file.
func (c *checker) seccomp(p *field.Path, s *v1.SeccompProfile) {
	if s == nil {
		return
	}
	q := p.Child("localhostProfile")
	oneOf(c, p.Child("type"), s.Type, v1.SeccompProfileTypeLocalhost, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined)
	if s.Type != v1.SeccompProfileTypeLocalhost {
		c.unwanted(p, s.LocalhostProfile, "can only be set when seccomp type is Localhost")
	} else if c.required(s.LocalhostProfile != nil && *s.LocalhostProfile != "", q, "must be set when seccomp type is Localhost") {
		c.localPath(q, *s.LocalhostProfile)
	}
}

// appArmor checks a profile: Localhost and only Localhost has a name.
func (c *checker) appArmor(p *field.Path, a *v1.AppArmorProfile) {
	if a == nil {
		return
	}
	q := p.Child("localhostProfile")
	oneOf(c, p.Child("type"), a.Type, v1.AppArmorProfileTypeLocalhost, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined)
	if a.Type != v1.AppArmorProfileTypeLocalhost {
		c.unwanted(p, a.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		return
	}
	if !c.required(a.LocalhostProfile != nil && *a.LocalhostProfile != "", q, "must be set when AppArmor type is Localhost") {
		return
	}
	if name := *a.LocalhostProfile; strings.TrimSpace(name) != name {
		c.add(field.Invalid(q, name, "must not be padded with whitespace"))
	} else if len(name) > 4095 {
		c.add(field.TooLong(q, "", 4095))
	}
}

// unwanted refuses a file for a profile whose type has none.
func (c *checker) unwanted(p *field.Path, file *string, text string) {
	if file != nil && c.read(p.Child("type")) {
		c.add(field.Invalid(p.Child("localhostProfile"), *file, text))
	}
}

// findContainer returns a regular or init container; nil if there is none.
func (c *checker) findContainer(name string) *v1.Container {
	for _, list := range [][]v1.Container{c.spec.InitContainers, c.spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// isLinux reports whether a pod sets its os to linux.
func isLinux(s *v1.PodSpec) bool { return s.OS != nil && s.OS.Name == v1.Linux }

func isTrue(b *bool) bool { return b != nil && *b }
