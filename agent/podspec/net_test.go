package podspec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestParseResolvConf(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     ResolvConf
	}{
		{"empty", "", ResolvConf{}},
		{"usual", "# nameserver 9.9.9.9\nnameserver 10.0.0.10 extra\n nameserver fd00::1\nsearch a.example. b.example .\noptions ndots:1 edns0\ndomain d.example\n",
			ResolvConf{[]string{"10.0.0.10", "fd00::1"}, []string{"a.example", "b.example"}, []string{"ndots:1", "edns0"}}},
		{"last search wins, options merge", "search a\nsearch b c\noptions ndots:1 rotate\noptions ndots:2\n",
			ResolvConf{nil, []string{"b", "c"}, []string{"ndots:2", "rotate"}}},
		{"empty search clears", "search a\nsearch", ResolvConf{}},
	} {
		got, err := ParseResolvConf([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	if _, err := ParseResolvConf([]byte("nameserver\n")); err == nil {
		t.Error("a nameserver line without address is taken")
	}
}

func numbered(n int, format string) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func TestDNSPolicies(t *testing.T) {
	cluster := func(n *Host) { n.ClusterDNS, n.ClusterDomain = []string{"10.96.0.10"}, "cluster.local" }
	inCluster := ResolvConf{[]string{"10.96.0.10"}, []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"}, []string{"ndots:5"}}
	host := specNode().Resolv
	for _, c := range []struct {
		name   string
		pod    func(*v1.PodSpec)
		node   func(*Host)
		want   ResolvConf
		warned int
	}{
		{"ClusterFirst without cluster", func(*v1.PodSpec) {}, nil, host, 0},
		{"ClusterFirst", func(*v1.PodSpec) {}, cluster, inCluster, 0},
		{"ClusterFirst on the host's network", func(s *v1.PodSpec) { s.HostNetwork = true }, cluster, host, 0},
		{"ClusterFirstWithHostNet", func(s *v1.PodSpec) { s.HostNetwork, s.DNSPolicy = true, v1.DNSClusterFirstWithHostNet }, cluster, inCluster, 0},
		{"Default", func(s *v1.PodSpec) { s.DNSPolicy = v1.DNSDefault }, cluster, host, 0},
		{"None", func(s *v1.PodSpec) {
			s.DNSPolicy = v1.DNSNone
			s.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.1"}, Searches: []string{"a"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}}}
		}, nil, ResolvConf{[]string{"1.1.1.1"}, []string{"a"}, []string{"ndots:2", "edns0"}}, 0},
		{"own settings add to the policy's", func(s *v1.PodSpec) {
			s.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"10.0.0.10", "1.1.1.1"}, Searches: []string{"b"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("7")}, {Name: "rotate"}}}
		}, nil, ResolvConf{[]string{"10.0.0.10", "1.1.1.1"}, []string{"corp.example", "b"}, []string{"ndots:7", "rotate"}}, 0},
		{"four servers, 33 searches", func(s *v1.PodSpec) {
			s.DNSPolicy = v1.DNSNone
			s.DNSConfig = &v1.PodDNSConfig{Nameservers: numbered(4, "10.0.0.%d"), Searches: numbered(33, "s%d")}
		}, nil, ResolvConf{numbered(3, "10.0.0.%d"), numbered(32, "s%d"), nil}, 2},
		{"three servers, and a search as long as one may be", func(s *v1.PodSpec) {
			s.DNSPolicy = v1.DNSNone
			s.DNSConfig = &v1.PodDNSConfig{Nameservers: numbered(3, "10.0.0.%d"), Searches: []string{strings.Repeat("x", 253)}}
		}, nil, ResolvConf{numbered(3, "10.0.0.%d"), []string{strings.Repeat("x", 253)}, nil}, 0},
		{"long searches", func(s *v1.PodSpec) {
			s.DNSPolicy = v1.DNSNone
			s.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{strings.Repeat("x", 254), "ok"}}
		}, nil, ResolvConf{[]string{"1.1.1.1"}, []string{"ok"}, nil}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := specNode()
			if c.node != nil {
				c.node(n)
			}
			got, warnings := DnsConfig(specPod(func(p *v1.Pod) { c.pod(&p.Spec) }), n)
			if !reflect.DeepEqual(ResolvConf{got.Servers, got.Searches, got.Options}, c.want) || len(warnings) != c.warned {
				t.Errorf("got %v, %q", got, warnings)
			}
		})
	}
}

func TestSearchesFitTheirLine(t *testing.T) {
	in := numbered(12, strings.Repeat("x", 200)+"%02d") // 202 characters and a blank each
	got := LimitSearches(in)
	if want := in[:10]; !slices.Equal(got, want) { // 10*202+9 = 2029; 11 would be 2232
		t.Errorf("kept %d of %d", len(got), len(in))
	}
	full := append(numbered(10, strings.Repeat("x", 201)+"%02d"), strings.Repeat("y", 8)) // 10*204+8 = 2048
	if got := LimitSearches(full); !slices.Equal(got, full) {
		t.Errorf("kept %d of %d, which just fit", len(got), len(full))
	}
}

func TestLocalResolvConf(t *testing.T) {
	for _, c := range []struct{ ips, want []string }{
		{nil, []string{"127.0.0.1"}},
		{[]string{"fd00::1", "192.0.2.1"}, []string{"::1", "127.0.0.1"}},
	} {
		if got := LocalResolvConf(c.ips); !slices.Equal(got.Servers, c.want) || !slices.Equal(got.Searches, []string{"."}) {
			t.Errorf("%v: got %v", c.ips, got)
		}
	}
}

func TestHostname(t *testing.T) {
	long := strings.Repeat("x", 62) + ".yz"
	for _, c := range []struct {
		name               string
		pod                func(*v1.PodSpec)
		host, domain, sent string
		err                bool
	}{
		{"name", func(*v1.PodSpec) {}, "web-node1", "", "web-node1", false},
		{"hostname", func(s *v1.PodSpec) { s.Hostname = "h" }, "h", "", "h", false},
		{"override drops the domain", func(s *v1.PodSpec) { s.HostnameOverride, s.Subdomain = new("my.other.host"), "sub" }, "my.other.host", "", "my.other.host", false},
		{"subdomain", func(s *v1.PodSpec) { s.Subdomain = "sub" }, "web-node1", "sub.default.svc.local", "web-node1", false},
		{"as FQDN", func(s *v1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = "sub", new(true) }, "web-node1", "sub.default.svc.local", "web-node1.sub.default.svc.local", false},
		{"FQDN too long", func(s *v1.PodSpec) {
			s.Hostname, s.Subdomain, s.SetHostnameAsFQDN = strings.Repeat("h", 63), "sub", new(true)
		}, strings.Repeat("h", 63), "sub.default.svc.local", "", true},
		{"FQDN as long as one may be", func(s *v1.PodSpec) {
			s.Hostname, s.Subdomain, s.SetHostnameAsFQDN = strings.Repeat("h", 42), "sub", new(true)
		}, strings.Repeat("h", 42), "sub.default.svc.local", strings.Repeat("h", 42) + ".sub.default.svc.local", false},
		{"not cut, and so not trimmed", func(s *v1.PodSpec) { s.Hostname = strings.Repeat("h", 62) + "-" }, strings.Repeat("h", 62) + "-", "", strings.Repeat("h", 62) + "-", false},
		{"cut and trimmed", func(s *v1.PodSpec) { s.Hostname = long }, strings.Repeat("x", 62), "", strings.Repeat("x", 62), false},
		{"host network", func(s *v1.PodSpec) { s.HostNetwork = true }, "web-node1", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := specNode()
			n.ClusterDomain = "local"
			p := specPod(func(p *v1.Pod) { c.pod(&p.Spec) })
			host, domain := hostname(p, n)
			sent, err := sandboxHostname(p, n)
			if host != c.host || domain != c.domain || sent != c.sent || (err != nil) != c.err {
				t.Errorf("got %s %s, sent %s, %v", host, domain, sent, err)
			}
		})
	}
}

func TestEtcHosts(t *testing.T) {
	const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := []v1.HostAlias{{IP: "10.9.9.9", Hostnames: []string{"foo.local", "bar.local"}}}
	for _, c := range []struct {
		name string
		pod  func(*v1.PodSpec)
		want string
	}{
		{"plain", func(*v1.PodSpec) {}, head + "10.1.0.2\tweb-node1\nfd00::2\tweb-node1\n"},
		{"subdomain", func(s *v1.PodSpec) { s.Subdomain = "sub" }, head + "10.1.0.2\tweb-node1.sub.default.svc.\tweb-node1\nfd00::2\tweb-node1.sub.default.svc.\tweb-node1\n"},
		{"aliases", func(s *v1.PodSpec) { s.HostAliases = aliases },
			head + "10.1.0.2\tweb-node1\nfd00::2\tweb-node1\n\n# Entries added by HostAliases.\n10.9.9.9\tfoo.local\tbar.local\n"},
		{"host network", func(s *v1.PodSpec) { s.HostNetwork, s.HostAliases = true, aliases },
			"# Kubernetes-managed hosts file (host network).\n127.0.0.1 me\n\n# Entries added by HostAliases.\n10.9.9.9\tfoo.local\tbar.local\n"},
	} {
		n := specNode()
		n.HostsFile = []byte("127.0.0.1 me\n")
		p := specPod(func(p *v1.Pod) { c.pod(&p.Spec) })
		if got := string(EtcHosts(p, []string{"10.1.0.2", "fd00::2"}, n)); got != c.want {
			t.Errorf("%s: got\n%s", c.name, got)
		}
	}
}

func TestSysctls(t *testing.T) {
	of := func(all ...v1.Sysctl) *v1.PodSecurityContext { return &v1.PodSecurityContext{Sysctls: all} }
	for _, row := range []struct {
		name string
		in   *v1.PodSecurityContext
		want map[string]string
	}{
		{"no security context", nil, nil},
		{"none in it", of(), nil},
		{"dots and slashes", of(v1.Sysctl{Name: "net/core/somaxconn", Value: "9"}, v1.Sysctl{Name: "kernel.shm_rmid_forced", Value: "1"}), map[string]string{"net.core.somaxconn": "9", "kernel.shm_rmid_forced": "1"}},
	} {
		got := sysctls(specPod(func(p *v1.Pod) { p.Spec.SecurityContext = row.in }))
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
