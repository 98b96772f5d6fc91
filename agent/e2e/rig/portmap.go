package rig

import (
	"os/exec"
	"strings"
)

// hasChains says whether the portmap plugin has been at work on this machine: it
// makes its chains in the nat table with the first host port and never removes them.
func hasChains() bool {
	return exec.Command("iptables", "-t", "nat", "-S", "CNI-HOSTPORT-DNAT").Run() == nil
}

// removeChains removes those chains unless a host port uses them.
func removeChains() {
	rules, err := output(exec.Command("iptables", "-t", "nat", "-S"))
	if err != nil || strings.Contains(rules, "CNI-DN-") {
		return
	}
	for rule := range strings.Lines(rules) {
		if strings.HasPrefix(rule, "-A ") && strings.Contains(rule, "-j CNI-HOSTPORT-") {
			run := "iptables -t nat -D " + strings.TrimSpace(strings.TrimPrefix(rule, "-A "))
			_ = exec.Command("sh", "-c", run).Run() // the rule is quoted as for a shell
		}
	}
	for _, chain := range []string{"CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"} {
		_ = exec.Command("iptables", "-t", "nat", "-F", chain).Run()
		_ = exec.Command("iptables", "-t", "nat", "-X", chain).Run()
	}
}
