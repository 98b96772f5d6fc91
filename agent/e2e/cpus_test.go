//go:build e2e

package e2e

import (
	"fmt"
	"runtime"
	"strings"
)

// givesContainersCPUsOfTheirOwn runs a container that requests a whole cpu beside one that requests
// nothing: the first has a processor for itself, also after the agent has started again, and the
// other one all that is left.
func givesContainersCPUsOfTheirOwn(w *world) {
	if runtime.NumCPU() < 2 {
		w.Fatal("this takes a machine with two processors")
	}
	w.config("cpuManagerPolicy: static\nreservedSystemCPUs: \"0\"\n")
	w.start()
	w.write("shares", fmt.Sprintf(onCPUs, ""))
	w.running("shares")
	all := w.cpusOf("shares")
	w.write("owns", fmt.Sprintf(onCPUs, `
    resources: {limits: {cpu: 1, memory: 64Mi}}`))
	w.running("owns")
	own := w.cpusOf("owns")
	if own == "0" || strings.ContainsAny(own, ",-") {
		w.Fatalf("it has the processors %s for itself, and 0 is reserved", own)
	}
	w.until("the other one runs on what is left", func() error {
		if left := w.cpusOf("shares"); left == all || runtime.NumCPU() == 2 && left != "0" {
			return fmt.Errorf("it runs on %s, of %s", left, all)
		}
		return nil
	})
	left := w.cpusOf("shares")
	w.kill()
	w.start()
	w.barrier("after")
	if now := w.cpusOf("owns") + " and " + w.cpusOf("shares"); now != own+" and "+left {
		w.Fatalf("after another start they have %s, and had %s and %s", now, own, left)
	}
	w.remove("owns")
	w.until("the other one has all again", func() error {
		if now := w.cpusOf("shares"); now != all {
			return fmt.Errorf("it runs on %s, of %s", now, all)
		}
		return nil
	})
}

const onCPUs = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sleep, "3600"]%s
`

// cpusOf returns the processors on which a pod's program may run.
func (w *world) cpusOf(pod string) string {
	w.Helper()
	out, err := w.agent.CLI(w.Context(), "exec", w.ns+"/"+pod, "--", "grep", "Cpus_allowed_list", "/proc/1/status")
	check(w.T, err)
	_, list, _ := strings.Cut(out, ":")
	return strings.TrimSpace(list)
}
