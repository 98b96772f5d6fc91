package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/node"
	"monopod/agent/pleg"
	"monopod/agent/status"
	"monopod/cri"
)

// reporter runs a reporter of the node beside the rig's agent, on a machine with
// plenty of all that measure does not take away.
func (r *rig) reporter(prepare func(*node.Reporter)) (stop func()) {
	r.Helper()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	m := r.sync.shared.Disk.Machine
	m.Cfg.Pressure = node.DefaultPressure()
	n := &node.Reporter{Machine: m, Store: r.store, Cri: cri.New(r.Conn()), Runtime: r.watch, Events: r.events, Turned: r.sync.lastTurn, Late: 2*syncTick + node.NodeEvery/2, Log: log,
		Info: node.ReadNodeInfo(r.TempDir(), "boot-1", "v1.2.3"), Pressed: map[v1.NodeConditionType]time.Time{}, Other: make(chan struct{}, 1),
		Measure: func(string, string) (node.Signals, error) { return node.Signals{}, nil }, Full: func() (int, bool) { return 85, false }, Also: func() {}}
	prepare(n)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	r.settle()
	return func() {
		cancel()
		running.Wait()
	}
}

// condition returns one of the node's conditions.
func (r *rig) condition(kind v1.NodeConditionType) v1.NodeCondition {
	r.Helper()
	if n := r.store.Node(); n != nil {
		for _, c := range n.Status.Conditions {
			if c.Type == kind {
				return c
			}
		}
	}
	r.Fatalf("the node has no condition %s", kind)
	return v1.NodeCondition{}
}

// nodeSays checks a condition's status, reason and the begin of its message.
func (r *rig) nodeSays(kind v1.NodeConditionType, status v1.ConditionStatus, reason, message string) {
	r.Helper()
	if c := r.condition(kind); c.Status != status || c.Reason != reason || !strings.HasPrefix(c.Message, message) {
		r.Errorf("%s is %s, %s, %q; want %s, %s, %q", kind, c.Status, c.Reason, c.Message, status, reason, message)
	}
}

// The runtime is back at the next call, as after an upgrade that was fast.
func TestTheNodeHasTheVersionOfARuntimeThatWasNeverMissed(t *testing.T) {
	live(t, func(r *rig) {
		defer r.reporter(func(*node.Reporter) {})()
		r.settle()
		r.SetCRIO("2.1.0", false, "")
		r.Restart()
		r.after(time.Minute)
		if got := r.store.Node().Status.NodeInfo.ContainerRuntimeVersion; got != "critest://2.1.0" {
			r.Errorf("the runtime is reported as %s", got)
		}
	})
}

func TestTheNodeFollowsItsRuntime(t *testing.T) {
	live(t, func(r *rig) {
		defer r.reporter(func(*node.Reporter) {})()
		r.settle()
		r.nodeSays(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
		n := r.store.Node()
		if n.Status.NodeInfo.ContainerRuntimeVersion != "critest://2.0.0" || n.Status.NodeInfo.KubeletVersion != "v1.36.3+monopod.v1.2.3" || n.Status.NodeInfo.BootID != "boot-1" {
			r.Errorf("%+v", n.Status.NodeInfo)
		}
		if n.Labels[v1.LabelHostname] != "n" || n.Status.Capacity.Cpu().IsZero() || len(n.Status.Addresses) < 2 || len(n.Status.Images) != 2 {
			r.Errorf("%+v", n)
		}
		since := r.condition(v1.NodeReady).LastTransitionTime

		r.after(3 * time.Second)
		r.Stop()
		r.after(2 * pleg.RelistWithEvents)
		r.nodeSays(v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down: Version: ")
		if down := r.condition(v1.NodeReady).LastTransitionTime; !down.After(since.Time) {
			r.Errorf("not ready since %v, ready since %v", down, since)
		}
		if n := r.store.Node(); len(n.Status.Images) != 2 {
			r.Errorf("images are forgotten: %v", n.Status.Images)
		}
		r.Resume()
		r.after(2 * time.Second)
		r.nodeSays(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	})
}

func TestTheNodeTellsWhatTheRuntimeLacks(t *testing.T) {
	live(t, func(r *rig) {
		defer r.reporter(func(*node.Reporter) {})()
		r.SetCondition(rt.NetworkReady, false, "NetworkPluginNotReady", "cni plugin not initialized")
		r.after(pleg.HealthEvery + time.Second)
		r.nodeSays(v1.NodeReady, v1.ConditionFalse, "KubeletNotReady",
			"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized")
		r.SetCondition(rt.RuntimeReady, false, "Starting", "wait")
		r.after(pleg.HealthEvery + time.Second)
		r.nodeSays(v1.NodeReady, v1.ConditionFalse, "KubeletNotReady",
			"container runtime not ready: RuntimeReady=false reason:Starting message:wait; container runtime network not ready: ")
		r.Stop()
		r.after(2 * pleg.RelistWithEvents)
		if text := r.condition(v1.NodeReady).Message; !strings.HasPrefix(text, "container runtime is down: ") || strings.Contains(text, "network") {
			r.Errorf("what does not answer says: %s", text)
		}
		r.Resume()
		r.SetCondition(rt.RuntimeReady, true, "", "")
		r.SetCondition(rt.NetworkReady, true, "", "")
		r.after(pleg.HealthEvery + time.Second)
		r.nodeSays(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "")
	})
}

// What rides on the reports is done with each of them, and causes none.
func TestWhatRidesOnReportsOfTheNodeIsDoneWithEach(t *testing.T) {
	live(t, func(r *rig) {
		n := 0
		stop := r.reporter(func(q *node.Reporter) { q.Also = func() { n++ } })
		r.after(time.Minute)
		stop()
		if n < 6 || n > 8 {
			r.Errorf("%d times in a minute", n)
		}
	})
}

// What a reload changes of the node shows without the wait for the next report.
func TestTheNodeIsReportedAnewWhenItIsToBe(t *testing.T) {
	live(t, func(r *rig) {
		var look func()
		var room atomic.Int64
		room.Store(110)
		defer r.reporter(func(n *node.Reporter) {
			look = n.Wake
			facts := n.Machine.ReadFacts
			n.Machine.ReadFacts = func() (node.Facts, error) {
				f, err := facts()
				f.Capacity = v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(room.Load(), resource.DecimalSI)}
				return f, err
			}
		})()
		r.after(node.NodeEvery)
		room.Store(7)
		look()
		r.settle()
		if n := r.store.Node().Status.Capacity.Pods().Value(); n != 7 {
			r.Errorf("the node is said to hold %d pods, not 7", n)
		}
	})
}

func TestTheHeartbeatIsTheLoops(t *testing.T) {
	live(t, func(r *rig) {
		var stuck time.Time // the loop turned last, if it is not zero
		var mu sync.Mutex
		hang := func(at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			stuck = at
		}
		defer r.reporter(func(n *node.Reporter) {
			turned := n.Turned
			n.Turned = func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				if !stuck.IsZero() {
					return stuck
				}
				return turned()
			}
		})()
		beat := func() time.Time { return r.condition(v1.NodeReady).LastHeartbeatTime.Time }
		first := beat()
		for range 6 {
			r.after(node.NodeEvery)
		}
		if ahead := beat().Sub(first); ahead < time.Minute-syncTick || ahead > time.Minute {
			r.Errorf("in a minute the heartbeat went %v ahead", ahead)
		}
		r.after(time.Second)
		info, err := os.ReadFile(filepath.Join(r.dir, "status", "node.json"))
		if err != nil || !strings.Contains(string(info), `"kind": "Node"`) {
			r.Errorf("%v\n%s", err, info)
		}

		last := time.Now()
		hang(last)
		for range 6 {
			r.after(node.NodeEvery)
		}
		if ahead := beat().Sub(last); ahead > 0 {
			r.Errorf("the loop is stuck and the heartbeat went %v ahead", ahead)
		}
		if n := strings.Count(r.log.String(), "the node's heartbeat stops"); n != 1 {
			r.Errorf("said %d times", n)
		}
		hang(time.Time{})
		r.after(node.NodeEvery)
		if !beat().After(last.Add(time.Minute)) {
			r.Errorf("the heartbeat does not go on: %v after %v", beat(), last)
		}
	})
}

func TestPressureLastsFiveMinutes(t *testing.T) {
	live(t, func(r *rig) {
		var mu sync.Mutex
		left := node.Signals{"memory.available": {Available: 1 << 30, Capacity: 8 << 30}, "nodefs.available": {Available: 50, Capacity: 100}, "imagefs.inodesFree": {Available: 50, Capacity: 100}}
		set := func(name string, available int64) {
			mu.Lock()
			defer mu.Unlock()
			left[name] = node.Signal{Available: available, Capacity: left[name].Capacity}
		}
		defer r.reporter(func(n *node.Reporter) {
			n.Measure = func(string, string) (node.Signals, error) {
				mu.Lock()
				defer mu.Unlock()
				out := node.Signals{}
				for k, v := range left {
					out[k] = v
				}
				return out, errors.New("something cannot be read")
			}
		})()
		r.nodeSays(v1.NodeMemoryPressure, v1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
		r.nodeSays(v1.NodePIDPressure, v1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
		set("memory.available", 99<<20)
		set("imagefs.inodesFree", 4)
		r.after(node.NodeEvery)
		r.nodeSays(v1.NodeMemoryPressure, v1.ConditionTrue, "KubeletHasInsufficientMemory",
			"memory pressure: 1% of 8.6 GB is left, less than the 100Mi of evictionHard memory.available: stop something")
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionTrue, "KubeletHasDiskPressure",
			"disk pressure: 4% of 100 inodes are left, less than the 5% of evictionHard imagefs.inodesFree: remove files there")
		set("memory.available", 1<<30)
		r.after(node.PressureFor - node.NodeEvery)
		r.nodeSays(v1.NodeMemoryPressure, v1.ConditionTrue, "KubeletHasInsufficientMemory", "memory pressure: enough memory is free again; the condition ends 5 min after that")
		r.after(node.NodeEvery)
		r.nodeSays(v1.NodeMemoryPressure, v1.ConditionFalse, "KubeletHasSufficientMemory", "")
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionTrue, "KubeletHasDiskPressure", "")
		r.nodeSays(v1.NodeReady, v1.ConditionTrue, "KubeletReady", "")
		r.tells("n", "Warning NodeHasInsufficientMemory: Node n status is now: NodeHasInsufficientMemory: memory pressure: 1% of 8.6 GB is left, less than the 100Mi of ",
			"Warning NodeHasDiskPressure: Node n status is now: NodeHasDiskPressure: disk pressure: 4% of 100 inodes are left, ",
			"Normal NodeHasSufficientMemory: Node n status is now: NodeHasSufficientMemory")
		if n := strings.Count(r.log.String(), "something cannot be read"); n != 1 {
			r.Errorf("the trouble is said %d times", n)
		}
	})
}

func TestImagesThatCannotGoAreDiskPressure(t *testing.T) {
	live(t, func(r *rig) {
		var full atomic.Bool
		defer r.reporter(func(n *node.Reporter) { n.Full = func() (int, bool) { return 85, full.Load() } })()
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "")
		full.Store(true)
		r.after(node.NodeEvery)
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionTrue, "KubeletHasDiskPressure", "disk pressure: the disk of the images is more than 85% full (imageGCHighThresholdPercent), ")
		full.Store(false)
		r.after(node.PressureFor)
		r.nodeSays(v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", "")
	})
}

func TestATransitionIsKeptOverARestart(t *testing.T) {
	live(t, func(r *rig) {
		stop := r.reporter(func(*node.Reporter) {})
		r.settle()
		since := r.condition(v1.NodeReady).LastTransitionTime
		r.after(time.Hour)
		stop()
		r.stop()
		r.after(time.Hour)
		r.start()
		stop = r.reporter(func(*node.Reporter) {})
		r.settle()
		defer func() { stop() }()
		for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeReady} {
			if c := r.condition(kind); !c.LastTransitionTime.Equal(&since) || c.LastHeartbeatTime.Sub(since.Time) < 2*time.Hour {
				r.Errorf("%s: since %v, was since %v; heartbeat %v", kind, c.LastTransitionTime, since, c.LastHeartbeatTime)
			}
		}
	})
}

func TestKubeletVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.36.3+monopod.v1.2.3", "": "v1.36.3+monopod.devel",
		"v0.0.0-20260102030405-0123456789ab+dirty": "v1.36.3+monopod.v0.0.0-20260102030405-0123456789ab-dirty",
	} {
		if got := node.KubeletVersion(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

func TestTheLargestImagesAreListed(t *testing.T) {
	var all []*rt.Image
	for k := range 60 {
		all = append(all, &rt.Image{Id: string(rune('a' + k)), Size: uint64(k), RepoTags: []string{"t1", "t2", "t3", "t4", "t5"}, RepoDigests: []string{"d"}})
	}
	got := node.NodeImages(all)
	if len(got) != 50 || got[0].SizeBytes != 59 || got[49].SizeBytes != 10 || strings.Join(got[0].Names, " ") != "d t1 t2 t3 t4" {
		t.Errorf("%d images, first %v", len(got), got[0])
	}
}

func TestWhatTheMachineSaysOfItself(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"etc/machine-id": "0123abcd\n", "etc/os-release": "NAME=x\nPRETTY_NAME=\"Some Linux 12 (old)\"\n", "proc/device-tree/vm,uuid": "uuid-of-vm\x00",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	i := node.ReadNodeInfo(dir, "b", "v1.0.0")
	if i.MachineID != "0123abcd" || i.SystemUUID != "uuid-of-vm" || i.OSImage != "Some Linux 12 (old)" || i.KernelVersion == "" || i.OperatingSystem != "linux" {
		t.Errorf("%+v", i)
	}
	if i := node.ReadNodeInfo(t.TempDir(), "b", ""); i.MachineID != "" || i.OSImage != "Linux" {
		t.Errorf("%+v", i)
	}
}

// The node has the resources of devices, of which root alone learns who has which.
func TestTheNodeHasResourcesOfDevices(t *testing.T) {
	onDevices(t, func(r *rig) {
		r.connects("tty0", "/dev/null")
		r.connects("tty1", "/dev/zero")
		r.want(usesSerial("web", "img:1"))
		stop := r.reporter(func(n *node.Reporter) { n.Devices = r.devices })
		defer stop()
		n := r.store.Node()
		for what, list := range map[string]v1.ResourceList{"capacity": n.Status.Capacity, "allocatable": n.Status.Allocatable} {
			if count := list["example.com/serial"]; count.Value() != 2 {
				t.Errorf("%s is %v", what, list)
			}
		}
		all := status.DevicesOf(n)
		if len(all) != 2 || strings.Join(all[0].Holders, ",") != "default/web-n/c" || len(all[1].Holders) > 0 {
			t.Errorf("devices are %+v", all)
		}
	})
}

func TestANodeWithoutResourcesOfDevices(t *testing.T) {
	live(t, func(r *rig) {
		stop := r.reporter(func(n *node.Reporter) { n.Devices = r.devices })
		defer stop()
		if n := r.store.Node(); n.Annotations != nil {
			t.Errorf("annotations %v", n.Annotations)
		}
	})
}
