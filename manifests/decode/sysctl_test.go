package decode

import "testing"

func TestSysctlNames(t *testing.T) {
	for in, want := range map[string]string{
		"kernel.shm_rmid_forced":   "kernel.shm_rmid_forced",
		"net/ipv4/ip_forward":      "net.ipv4.ip_forward",
		"net/ipv4/conf/eth0.1/arp": "net.ipv4.conf.eth0/1.arp",
		"net.ipv4.conf.eth0/1.arp": "net.ipv4.conf.eth0/1.arp",
	} {
		if got := SysctlName(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
