package podspec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The limits of resolv.conf(5) that apply to pods.
const (
	maxNameservers   = 3
	MaxSearches      = 32
	maxSearchChars   = 2048 // all searches joined by spaces
	maxSearchElement = 253
)

// ResolvConf is one resolv.conf.
type ResolvConf struct{ Servers, Searches, Options []string }

// ParseResolvConf reads a resolv.conf as the kubelet does: the last search line counts, a later
// option overrides an earlier one of its name, domain lines do not count.
func ParseResolvConf(data []byte) (ResolvConf, error) {
	var r ResolvConf
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		switch f[0] {
		case "nameserver":
			if len(f) < 2 {
				return ResolvConf{}, errors.New("nameserver line without an address")
			}
			r.Servers = append(r.Servers, f[1])
		case "search":
			r.Searches = nil
			for _, s := range f[1:] {
				if s = strings.TrimSuffix(s, "."); s != "" {
					r.Searches = append(r.Searches, s)
				}
			}
		case "options":
			r.Options = mergeOptions(r.Options, f[1:])
		}
	}
	return r, nil
}

// LocalResolvConf returns the resolv.conf for settings without a file: this machine is the name
// server.
func LocalResolvConf(hostIPs []string) ResolvConf {
	r := ResolvConf{Searches: []string{"."}}
	for _, ip := range hostIPs {
		if strings.Contains(ip, ":") {
			r.Servers = append(r.Servers, "::1")
		} else {
			r.Servers = append(r.Servers, "127.0.0.1")
		}
	}
	if len(r.Servers) == 0 {
		r.Servers = []string{"127.0.0.1"}
	}
	return r
}

// mergeOptions sets options by name ("ndots" of "ndots:5"). An option that overrides
// another keeps its position.
func mergeOptions(old, more []string) []string {
	out := slices.Clone(old)
	for _, o := range more {
		name, _, _ := strings.Cut(o, ":")
		i := slices.IndexFunc(out, func(x string) bool {
			has, _, _ := strings.Cut(x, ":")
			return has == name
		})
		if i < 0 {
			out = append(out, o)
		} else {
			out[i] = o
		}
	}
	return out
}

// DnsConfig returns the pod's resolv.conf and a warning for each limit that shortened
// it.
func DnsConfig(p *v1.Pod, n *Host) (*rt.DNSConfig, []string) {
	r := baseDNS(p, n)
	if c := p.Spec.DNSConfig; c != nil {
		r.Servers = union(r.Servers, c.Nameservers)
		r.Searches = union(r.Searches, c.Searches)
		var options []string
		for _, o := range c.Options {
			if o.Value != nil && *o.Value != "" {
				options = append(options, o.Name+":"+*o.Value)
			} else {
				options = append(options, o.Name)
			}
		}
		r.Options = mergeOptions(r.Options, options)
	}
	var warnings []string
	if len(r.Servers) > maxNameservers {
		r.Servers = r.Servers[:maxNameservers]
		warnings = append(warnings, "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "+strings.Join(r.Servers, " "))
	}
	if s := LimitSearches(r.Searches); len(s) < len(r.Searches) {
		r.Searches = s
		warnings = append(warnings, "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+strings.Join(s, " "))
	}
	return &rt.DNSConfig{Servers: r.Servers, Searches: r.Searches, Options: r.Options}, warnings
}

// ResolvConfOf returns the pod's resolv.conf in the form that runtimes write.
func ResolvConfOf(p *v1.Pod, n *Host) []byte {
	c, _ := DnsConfig(p, n)
	var b bytes.Buffer
	if len(c.Searches) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.Searches, " "))
	}
	for _, server := range c.Servers {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(c.Options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(c.Options, " "))
	}
	return b.Bytes()
}

// baseDNS returns the resolv.conf of the pod's DNS policy, without its dnsConfig.
func baseDNS(p *v1.Pod, n *Host) ResolvConf {
	policy := p.Spec.DNSPolicy
	switch {
	case policy == v1.DNSNone:
		return ResolvConf{}
	case policy == v1.DNSDefault, policy == v1.DNSClusterFirst && p.Spec.HostNetwork, len(n.ClusterDNS) == 0:
		return n.Resolv
	}
	r := ResolvConf{Servers: n.ClusterDNS, Searches: n.Resolv.Searches, Options: []string{"ndots:5"}}
	if d := n.ClusterDomain; d != "" {
		r.Searches = union([]string{fmt.Sprintf("%s.svc.%s", p.Namespace, d), "svc." + d, d}, n.Resolv.Searches)
	}
	return r
}

// LimitSearches drops searches that are too long, then the last ones until the limits are met.
func LimitSearches(in []string) []string {
	out := slices.Clone(in[:min(len(in), MaxSearches)])
	out = slices.DeleteFunc(out, func(s string) bool { return len(s) > maxSearchElement })
	for len(strings.Join(out, " ")) > maxSearchChars {
		out = out[:len(out)-1]
	}
	return out
}

// union returns a, then b, each element once.
func union(a, b []string) []string {
	var out []string
	for _, s := range slices.Concat(a, b) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
