//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// givesContainersCPUsOfTheirOwn runs a container that requests a whole cpu beside one that requests
// nothing: the first has a processor for itself, also after the agent has started again, and the
// other one all that is left. Clients of a kubelet are told so.
func givesContainersCPUsOfTheirOwn(w *world) {
	if runtime.NumCPU() < 2 {
		w.Fatal("this takes a machine with two processors")
	}
	w.agent.Settings += "cpuManagerPolicy: static\nreservedSystemCPUs: \"0\"\npodResources: true\n"
	w.start()
	w.write("shares", fmt.Sprintf(onCPUs, ""))
	w.running("shares")
	w.phase("shares", v1.PodRunning)
	all := w.cpusOf("shares")
	w.write("owns", fmt.Sprintf(onCPUs, `
    resources: {limits: {cpu: 1, memory: 64Mi}}`))
	w.running("owns")
	w.phase("owns", v1.PodRunning) // the agent knows, too
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
	w.toldCPUs("owns: main "+own, "shares: main ")
	w.kill() // its socket stays
	w.start()
	w.barrier("after")
	w.toldCPUs("after: main ", "owns: main "+own, "shares: main ")
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
	w.toldCPUs("after: main ", "shares: main ")
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

// toldCPUs checks which processors a client of a kubelet is told that containers have for
// themselves: "pod: container 1", sorted.
func (w *world) toldCPUs(want ...string) {
	w.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(w.agent.Root, "pod-resources/kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(w.T, err)
	defer conn.Close()
	client := api.NewPodResourcesListerClient(conn)
	all, err := client.List(w.Context(), &api.ListPodResourcesRequest{})
	check(w.T, err)
	var got []string
	for _, p := range all.PodResources {
		one, err := client.Get(w.Context(), &api.GetPodResourcesRequest{PodName: p.Name, PodNamespace: p.Namespace})
		check(w.T, err)
		if !proto.Equal(one.PodResources, p) || p.Namespace != w.ns {
			w.Errorf("Get says %v, List %v", one.PodResources, p)
		}
		for _, c := range p.Containers {
			got = append(got, strings.TrimSuffix(p.Name, name(""))+": "+c.Name+" "+strings.Trim(fmt.Sprint(c.CpuIds), "[]"))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.Errorf("clients are told %q, not %q", got, want)
	}
	can, err := client.GetAllocatableResources(w.Context(), &api.AllocatableResourcesRequest{})
	check(w.T, err)
	if len(can.CpuIds) != runtime.NumCPU()-1 || slices.Contains(can.CpuIds, 0) {
		w.Errorf("containers can have %d", can.CpuIds)
	}
}
