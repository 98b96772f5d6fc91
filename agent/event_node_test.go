package agent

import (
	"strings"
	"testing"

	"monopod/agent/podspec"
)

func TestLimitsOfDNSAreTold(t *testing.T) {
	const omitted = "Warning DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, " +
		"the applied nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3"
	prepare := func(r *rig) {
		r.machine = func(n *podspec.Host) { n.Resolv.Servers = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"} }
	}
	liveWith(t, prepare, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("own", "img:1", "dnsPolicy: None", "dnsConfig: {nameservers: [192.0.2.1]}"))
		r.tells("web-n", omitted)
		if got := strings.Join(r.happened("own-n"), " "); strings.Contains(got, "DNSConfigForming") {
			t.Errorf("told %s", got)
		}
	})
}
