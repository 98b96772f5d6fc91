package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Kubelet is a kubelet on what an agent has: its node name, root dir, cgroups
// and runtime.
type Kubelet struct {
	Manifests string
	Log       string
	argv      []string
	process   *Process
}

// NewKubelet prepares a kubelet for the pods of a, with another folder of manifests. It may run
// while a does not. It has no API server unless flags name one.
func (a *Agent) NewKubelet(binary, manifests string, flags ...string) (*Kubelet, error) {
	file := filepath.Join(a.Dir, "kubelet.yaml")
	text := fmt.Sprintf(kubeletSettings, manifests, a.PodLogs, a.Endpoint, a.Cgroups)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("prepare kubelet: %w", err)
	}
	return &Kubelet{Manifests: manifests, Log: filepath.Join(a.Dir, "kubelet.log"),
		argv: append([]string{binary, "--config", file, "--root-dir", a.Root, "--hostname-override", Node}, flags...)}, nil
}

// kubeletSettings are those of a kubelet that serves nothing and removes nothing for want of room.
const kubeletSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %s
podLogsDir: %s
containerRuntimeEndpoint: %s
cgroupRoot: %s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enableServer: false
healthzPort: 0
fileCheckFrequency: 1s
enforceNodeAllocatable: [none]
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.inodesFree: "0%%"}
localStorageCapacityIsolation: false
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

// Start starts the kubelet and does not wait for anything.
func (k *Kubelet) Start() (err error) {
	k.process, err = StartProcess(k.Log, nil, k.argv...)
	return err
}

// Ended returns how the kubelet ended; nil: it runs.
func (k *Kubelet) Ended() error {
	select {
	case <-k.process.Done():
		return fmt.Errorf("the kubelet ended: %w\n%s", k.process.Err(), Tail(k.Log, 20))
	default:
		return nil
	}
}

// Stop ends the kubelet; it leaves its pods running.
func (k *Kubelet) Stop() {
	if k.process != nil {
		_ = k.process.Stop(30 * time.Second) // its exit code does not matter
	}
}
