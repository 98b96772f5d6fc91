package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"monopod/agent/config"
	"monopod/agent/cpus"
	"monopod/agent/node"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// quietAgent returns an agent without a runtime.
func quietAgent(t *testing.T, podResources bool) *Agent {
	t.Helper()
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint, cfg.CgroupDriver, cfg.Root, cfg.PodLogs = []string{t.TempDir()}, "n", "unix:///nowhere/runtime", node.DriverNone, t.TempDir(), t.TempDir()
	cfg.Socket, cfg.Listen, cfg.PodResources = t.TempDir()+"/socket", "", podResources
	a, err := New(cfg, nil, Options{Log: slog.New(slog.DiscardHandler)})
	noErr(t, err)
	return a
}

// runs runs an agent until the test ends.
func (a *Agent) runs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		noErr(t, <-ended)
	})
}

// What the keeper of CPUs has assigned to the pods that are reported is what a client gets.
func TestClientsOfAKubeletAskForTheCPUsOfContainers(t *testing.T) {
	a := quietAgent(t, true)
	machine := &rig{T: t, system: t.TempDir()}
	machine.describeCPUs("0-7")
	reserved := amounts("cpu", "1")[v1.ResourceCPU]
	var err error
	a.pins, err = pinning.New(pinning.Settings{Policy: cpus.Settings{Policy: cpus.Static, Reserved: &reserved}, Every: time.Hour,
		System: machine.system, Path: filepath.Join(t.TempDir(), "state")}, pins{a.cri, a.watch.Lister}, a.log, nil)
	noErr(t, err)
	pods, _ := manifests.Decode("/m/own.yaml", []byte(exclusive("own", "img:1", "2")), manifests.Options{NodeName: "n", NameSuffix: true})
	a.pins.Take(pods[0].Pod, nil)
	a.store.SetPod("default/own-n", pods[0].Pod)
	a.runs(t)

	conn, err := grpc.NewClient("unix://"+filepath.Join(a.cfg.Root, "pod-resources/kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	noErr(t, err)
	defer conn.Close()
	client := api.NewPodResourcesListerClient(conn)
	all, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	noErr(t, err)
	one, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "own-n", PodNamespace: "default"})
	noErr(t, err)
	can, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	noErr(t, err)
	const want = "[name:own-n namespace:default containers:{name:c cpu_ids:1 cpu_ids:5}] [1 2 3 4 5 6 7]"
	for _, got := range []string{fmt.Sprint(all.PodResources, can.CpuIds), fmt.Sprint([]any{one.PodResources}, can.CpuIds)} {
		if got = strings.NewReplacer(`"`, "", "  ", " ").Replace(got); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	n, err := testutil.GatherAndCount(a.metrics.Registry(), "kubelet_pod_resources_endpoint_requests_list", "kubelet_pod_resources_endpoint_errors_get")
	if n != 1 || err != nil {
		t.Errorf("%d counters, %v", n, err)
	}
}

func TestNobodyMayAskUnlessTheSettingsSaySo(t *testing.T) {
	a := quietAgent(t, false)
	a.runs(t)
	if _, err := os.Lstat(filepath.Join(a.cfg.Root, "pod-resources")); !os.IsNotExist(err) {
		t.Errorf("there is a folder: %v", err)
	}
}

// Its clients may have its folder, and a disk may be full. Pods run without it.
func TestTheAgentRunsWithoutTheSocketOfAKubelet(t *testing.T) {
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint, cfg.CgroupDriver, cfg.Root, cfg.PodLogs = []string{t.TempDir()}, "n", "unix:///nowhere/runtime", node.DriverNone, t.TempDir(), t.TempDir()
	cfg.Socket, cfg.Listen, cfg.PodResources = t.TempDir()+"/socket", "", true
	noErr(t, os.WriteFile(filepath.Join(cfg.Root, "pod-resources"), nil, 0o600))
	var said strings.Builder
	a, err := New(cfg, nil, Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	noErr(t, err)
	if !strings.Contains(said.String(), "no client can ask for the resources of pods until monopod starts again: listen on ") {
		t.Errorf("logged %s", said.String())
	}
	var reasons []string
	a.events.List("").Each(func(e *v1.Event) bool {
		reasons = append(reasons, e.Reason)
		return true
	})
	if !slices.Contains(reasons, "FailedListen") {
		t.Errorf("events %q", reasons)
	}
	a.runs(t)
}
