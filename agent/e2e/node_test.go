//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/e2e/rig"
)

func tellsWhatIsUsed(w *world) {
	w.start()
	w.write("busy", strings.Replace(sleeper, "sleep 3600 & wait", "while :; do :; done", 1)+"    resources: {requests: {cpu: '1'}}\n")
	w.write("big", `
  terminationGracePeriodSeconds: 1
  dnsPolicy: Default
  volumes: [{name: mem, emptyDir: {medium: Memory}}, {name: disk, emptyDir: {}}]
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "dd if=/dev/zero of=/mem/a bs=1M count=32; dd if=/dev/zero of=/disk/a bs=1M count=8; dd if=/dev/zero of=/wrote bs=1M count=4; sync; touch /mem/done; exec sleep 3600"]
    volumeMounts: [{name: mem, mountPath: /mem}, {name: disk, mountPath: /disk}]
`)
	run := w.running("busy", "big")
	w.until("big has written its files", func() error {
		_, err := os.Stat(filepath.Join(w.agent.Root, "pods", run["big"].UID, "volumes/kubernetes.io~empty-dir/mem/done"))
		return err
	})
	w.until("the summary tells it", func() error { return plausible(w) })

	for path, want := range map[string][]string{
		"/metrics/resource": {`pod_memory_working_set_bytes{namespace="` + w.ns + `",pod="` + name("big") + `"}`, "resource_scrape_error 0\n"},
		"/metrics/cadvisor": {`pod="` + name("big") + `",interface="eth0"}`, `container_cpu_usage_seconds_total{container="main",id="`},
	} {
		code, body, err := w.agent.Get(w.Context(), path)
		check(w.T, err)
		for _, part := range want {
			if code != 200 || !strings.Contains(body, part) {
				w.Errorf("%s: %d, no %s in\n%.3000s", path, code, part, body)
			}
		}
	}
	out, err := w.agent.CLI(w.Context(), "top", "--sort-by", "cpu")
	check(w.T, err)
	rows := strings.Split(out, "\n")
	if len(rows) < 6 || !strings.HasPrefix(rows[1], rig.Node+" ") || !strings.Contains(rows[4], "busy") || !strings.Contains(rows[5], "big") {
		w.Errorf("monopod top prints\n%s", out)
	}
}

// plausible returns nil if the summary tells what the two pods do.
func plausible(w *world) error {
	code, body, err := w.agent.Get(w.Context(), "/stats/summary")
	if err != nil || code != 200 {
		return fmt.Errorf("%d %s: %v", code, body, err)
	}
	var sum stats.Summary
	if err := json.Unmarshal([]byte(body), &sum); err != nil {
		return rig.Final(err)
	}
	pods := map[string]stats.PodStats{}
	for _, p := range sum.Pods {
		pods[p.PodRef.Name] = p
	}
	busy, big := pods[name("busy")], pods[name("big")]
	if busy.CPU == nil || big.Memory == nil || big.EphemeralStorage == nil || big.Network == nil || len(big.VolumeStats) != 2 || len(big.Containers) != 1 {
		return fmt.Errorf("parts are missing: %s", body)
	}
	volumes := map[string]*uint64{}
	for _, v := range big.VolumeStats {
		volumes[v.Name] = v.UsedBytes
	}
	for _, row := range []struct {
		what string
		got  *uint64
		min  uint64
	}{
		{"cpu of busy", busy.CPU.UsageNanoCores, 100_000_000}, // it would be 1e9 if nobody else was at work
		{"cpu of the node", sum.Node.CPU.UsageNanoCores, 100_000_000},
		{"memory of big", big.Memory.WorkingSetBytes, 32 << 20},
		{"memory of the node", sum.Node.Memory.WorkingSetBytes, 32 << 20},
		{"volume in memory", volumes["mem"], 32 << 20},
		{"volume on disk", volumes["disk"], 8 << 20},
		{"root of big", big.Containers[0].Rootfs.UsedBytes, 4 << 20},
		{"logs of big", big.Containers[0].Logs.UsedBytes, 1},
		{"ephemeral storage of big", big.EphemeralStorage.UsedBytes, 12 << 20},
		{"received by big", big.Network.RxBytes, 1},
		{"processes of big", big.ProcessStats.ProcessCount, 1 + w.rig.Runtime.Pauses()},
		{"images", sum.Node.Runtime.ImageFs.UsedBytes, w.rig.Runtime.ImageBytes()},
	} {
		if row.got == nil || *row.got < row.min {
			b, _ := json.Marshal(row.got)
			return fmt.Errorf("%s: %s, want %d at least; %s", row.what, b, row.min, body)
		}
	}
	return nil
}

// nodeFile returns status/node.json's condition Ready.
func nodeFile(w *world) (ready v1.NodeCondition, err error) {
	b, err := os.ReadFile(filepath.Join(w.agent.Root, "status", "node.json"))
	if err != nil {
		return ready, err
	}
	return readyOf(b)
}

// readyOf returns the condition Ready of a node.
func readyOf(b []byte) (ready v1.NodeCondition, err error) {
	var n v1.Node
	if err := json.Unmarshal(b, &n); err != nil {
		return ready, rig.Final(err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c, nil
		}
	}
	return ready, fmt.Errorf("no condition Ready in %s", b)
}

// nodeReady waits until the node is ready, or not, and returns when it was reported.
func nodeReady(w *world, what string, accept func(c v1.NodeCondition) bool) time.Time {
	w.Helper()
	var beat time.Time
	w.until("status/node.json: "+what, func() error {
		c, err := nodeFile(w)
		if err == nil && !accept(c) {
			err = fmt.Errorf("it says %+v", c)
		}
		beat = c.LastHeartbeatTime.Time
		return err
	})
	return beat
}

func reportsTheNode(w *world) {
	w.start()
	first := nodeReady(w, "is ready", func(c v1.NodeCondition) bool { return c.Status == v1.ConditionTrue })

	check(w.T, w.rig.Runtime.Stop())
	nodeReady(w, "tells that the runtime is gone", func(c v1.NodeCondition) bool {
		return c.Status == v1.ConditionFalse && c.Reason == "KubeletNotReady" && strings.HasPrefix(c.Message, "container runtime is down: ")
	})
	check(w.T, w.rig.Runtime.Start(w.Context()))
	nodeReady(w, "is ready again", func(c v1.NodeCondition) bool { return c.Status == v1.ConditionTrue })
	w.until("/node: the heartbeat goes on", func() error { // the file has it minutes later
		_, body, err := w.agent.Get(w.Context(), "/node")
		if err != nil {
			return err
		}
		c, err := readyOf([]byte(body))
		if err == nil && !c.LastHeartbeatTime.After(first) {
			err = fmt.Errorf("it says %+v", c)
		}
		return err
	})
}
