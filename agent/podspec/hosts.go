package podspec

import (
	"bytes"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// hostsHead is the kubelet's, byte for byte: programs compare and parse it.
const hostsHead = `# Kubernetes-managed hosts file.
127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// EtcHosts returns the pod's /etc/hosts. A pod on the host network gets the machine's.
func EtcHosts(p *v1.Pod, ips []string, n *Host) []byte {
	var b bytes.Buffer
	if p.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.Write(n.HostsFile)
	} else {
		b.WriteString(hostsHead)
		host, domain := hostname(p, n)
		names := host
		if domain != "" {
			names = host + "." + domain + "\t" + host
		}
		for _, ip := range ips {
			fmt.Fprintf(&b, "%s\t%s\n", ip, names)
		}
	}
	if len(p.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, a := range p.Spec.HostAliases {
		fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	return b.Bytes()
}
