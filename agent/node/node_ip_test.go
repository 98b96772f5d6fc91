package node

import (
	"net/netip"
	"slices"
	"testing"
)

func TestTheMachinesAddressesMayBeGiven(t *testing.T) {
	given := []string{"192.0.2.7", "2001:db8::7"}
	m := &Node{Cfg: NodeSettings{IPs: given}}
	if got := m.Now().HostIPs; !slices.Equal(got, given) {
		t.Errorf("it has %v, want %v", got, given)
	}
	m = &Node{}
	got := m.Now().HostIPs
	if len(got) != 1 || slices.Contains(given, got[0]) {
		t.Errorf("without, it has %v", got)
	}
	if _, err := netip.ParseAddr(got[0]); err != nil {
		t.Error(err)
	}
}
