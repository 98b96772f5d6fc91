package admission

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/manifests/decode"
)

// safeSysctls returns the sysctls that do not affect other pods, each with the first kernel for
// which that is true.
func safeSysctls() map[string]node.Kernel {
	return map[string]node.Kernel{
		"kernel.shm_rmid_forced":              {},
		"net.ipv4.ip_local_port_range":        {},
		"net.ipv4.tcp_syncookies":             {},
		"net.ipv4.ping_group_range":           {},
		"net.ipv4.ip_unprivileged_port_start": {},
		"net.ipv4.ip_local_reserved_ports":    {Major: 3, Minor: 16},
		"net.ipv4.tcp_keepalive_time":         {Major: 4, Minor: 5},
		"net.ipv4.tcp_keepalive_intvl":        {Major: 4, Minor: 5},
		"net.ipv4.tcp_keepalive_probes":       {Major: 4, Minor: 5},
		"net.ipv4.tcp_fin_timeout":            {Major: 4, Minor: 6},
		"net.ipv4.tcp_rmem":                   {Major: 4, Minor: 15},
		"net.ipv4.tcp_wmem":                   {Major: 4, Minor: 15},
	}
}

// admitSysctls refuses sysctls that are neither safe nor allowed by the settings, and
// those of a namespace that the pod shares with the machine.
func admitSysctls(p *v1.Pod, f *node.Facts) *Rejection {
	for _, s := range podspec.PodSecurity(p).Sysctls {
		name := decode.SysctlName(s.Name)
		space := decode.SysctlNamespace(name)
		switch {
		case !sysctlAllowed(name, f):
			return &Rejection{"SysctlForbidden", message.Of("forbidden sysctl: %q not allowlisted", message.Name(s.Name))}
		case space == "Net" && p.Spec.HostNetwork, space == "IPC" && p.Spec.HostIPC:
			return &Rejection{"SysctlForbidden", message.Of("forbidden sysctl: %q not allowed with host %s enabled", message.Name(s.Name), message.Name(space))}
		}
	}
	return nil
}

func sysctlAllowed(name string, f *node.Facts) bool {
	if since, safe := safeSysctls()[name]; safe && !f.Kernel.Before(since) {
		return true
	}
	return slices.ContainsFunc(f.Sysctls, func(pattern string) bool {
		pattern = decode.SysctlName(pattern)
		prefix, open := strings.CutSuffix(pattern, "*")
		return open && strings.HasPrefix(name, prefix) || name == pattern
	})
}
