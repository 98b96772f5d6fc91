package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests/decode"
)

// SandboxConfig translates the pod into its sandbox config, which each CreateContainer
// in that sandbox carries too.
func SandboxConfig(p *v1.Pod, attempt uint32, n *Host) (*rt.PodSandboxConfig, error) {
	host, err := sandboxHostname(p, n)
	if err != nil {
		return nil, err
	}
	dns, _ := DnsConfig(p, n)
	return &rt.PodSandboxConfig{
		Metadata: &rt.PodSandboxMetadata{
			Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID), Attempt: attempt,
		},
		Hostname:     host,
		LogDirectory: LogDirectory(n.PodLogs, p),
		DnsConfig:    dns,
		PortMappings: portMappings(p),
		Labels:       sandboxLabels(p, n),
		Annotations:  p.Annotations,
		Linux: &rt.LinuxPodSandboxConfig{
			CgroupParent:    n.Cgroups.Pod(CgroupClass(p), string(p.UID)),
			Sysctls:         sysctls(p),
			SecurityContext: sandboxSecurity(p),
			Resources:       sandboxResources(p, n),
			Overhead:        sandboxOverhead(p, n),
		},
	}, nil
}

// maxHostname is the longest host name of Linux.
const maxHostname = 64

func sandboxHostname(p *v1.Pod, n *Host) (string, error) {
	if p.Spec.HostNetwork {
		return "", nil
	}
	host, domain := hostname(p, n)
	if domain == "" || p.Spec.SetHostnameAsFQDN == nil || !*p.Spec.SetHostnameAsFQDN {
		return host, nil
	}
	fqdn := host + "." + domain
	if len(fqdn) > maxHostname {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			fqdn, maxHostname, len(fqdn))
	}
	return fqdn, nil
}

// hostname returns the pod's short name, at most 63 characters, and its
// domain, empty without a subdomain.
func hostname(p *v1.Pod, n *Host) (host, domain string) {
	s := &p.Spec
	switch {
	case s.HostnameOverride != nil:
		return shortHostname(*s.HostnameOverride), ""
	case s.Hostname != "":
		host = shortHostname(s.Hostname)
	default:
		host = shortHostname(p.Name)
	}
	if s.Subdomain != "" {
		domain = s.Subdomain + "." + p.Namespace + ".svc." + n.ClusterDomain
	}
	return host, domain
}

func shortHostname(s string) string {
	if len(s) <= 63 {
		return s
	}
	return strings.TrimRight(s[:63], "-.")
}

// portMappings returns the ports of the regular containers, also those without a host
// port. A port that one container names or lists twice counts once.
func portMappings(p *v1.Pod) []*rt.PortMapping {
	var out []*rt.PortMapping
	for i := range p.Spec.Containers {
		seen := map[v1.ContainerPort]bool{}
		for _, port := range p.Spec.Containers[i].Ports {
			key := port
			if port.Name != "" {
				key = v1.ContainerPort{Name: port.Name}
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			out = append(out, &rt.PortMapping{
				Protocol:      rt.Protocol(rt.Protocol_value[string(port.Protocol)]),
				ContainerPort: port.ContainerPort,
				HostPort:      port.HostPort,
				HostIp:        port.HostIP,
			})
		}
	}
	return out
}

// sysctls returns the pod's sysctls with dots as separators.
func sysctls(p *v1.Pod) map[string]string {
	if p.Spec.SecurityContext == nil || len(p.Spec.SecurityContext.Sysctls) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, s := range p.Spec.SecurityContext.Sysctls {
		out[decode.SysctlName(s.Name)] = s.Value
	}
	return out
}
