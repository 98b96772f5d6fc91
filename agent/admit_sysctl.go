package agent

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

// kernel is a version: 4.15.
type kernel struct{ Major, Minor int }

// parseKernel reads the front of a release such as 6.1.0-13-amd64.
func parseKernel(release string) kernel {
	var k kernel
	fmt.Sscanf(release, "%d.%d", &k.Major, &k.Minor)
	return k
}

func (k kernel) before(l kernel) bool {
	return k.Major < l.Major || k.Major == l.Major && k.Minor < l.Minor
}

// safeSysctls returns the settings that harm no other pod, each with the first
// kernel in which that is so.
func safeSysctls() map[string]kernel {
	return map[string]kernel{
		"kernel.shm_rmid_forced":              {},
		"net.ipv4.ip_local_port_range":        {},
		"net.ipv4.tcp_syncookies":             {},
		"net.ipv4.ping_group_range":           {},
		"net.ipv4.ip_unprivileged_port_start": {},
		"net.ipv4.ip_local_reserved_ports":    {3, 16},
		"net.ipv4.tcp_keepalive_time":         {4, 5},
		"net.ipv4.tcp_keepalive_intvl":        {4, 5},
		"net.ipv4.tcp_keepalive_probes":       {4, 5},
		"net.ipv4.tcp_fin_timeout":            {4, 6},
		"net.ipv4.tcp_rmem":                   {4, 15},
		"net.ipv4.tcp_wmem":                   {4, 15},
	}
}

// admitSysctls refuses kernel settings that nobody allowed, and those of a
// namespace that the pod shares with the machine.
func admitSysctls(p *v1.Pod, f *nodeFacts) *refusal {
	for _, s := range podSecurity(p).Sysctls {
		name := decode.SysctlName(s.Name)
		space := decode.SysctlNamespace(name)
		switch {
		case !sysctlAllowed(name, f):
			return &refusal{"SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowlisted", s.Name)}
		case space == "Net" && p.Spec.HostNetwork, space == "IPC" && p.Spec.HostIPC:
			return &refusal{"SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowed with host %s enabled", s.Name, space)}
		}
	}
	return nil
}

func sysctlAllowed(name string, f *nodeFacts) bool {
	if since, safe := safeSysctls()[name]; safe && !f.Kernel.before(since) {
		return true
	}
	return slices.ContainsFunc(f.Sysctls, func(pattern string) bool {
		pattern = decode.SysctlName(pattern)
		prefix, open := strings.CutSuffix(pattern, "*")
		return open && strings.HasPrefix(name, prefix) || name == pattern
	})
}
