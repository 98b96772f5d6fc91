package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

const habitPods = `
- metadata: {name: web-node1, namespace: default}
  spec:
    nodeName: node1
    containers: [{name: main, image: a, resources: {requests: {cpu: 500m, memory: 256Mi}, limits: {memory: 512Mi}}}]
  status: {phase: Running}
- metadata: {name: job-node1, namespace: batch}
  spec: {nodeName: node1, containers: [{name: main, image: a, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Succeeded}
`

func habitManifests() status.Manifests {
	pods := []string{"default/web-node1", "default/a-pod-with-a-rather-long-name-node1"}
	return status.Manifests{Dir: "/m",
		Files: []status.File{{Path: "/m/web.yaml", Objects: []status.Object{
			{Kind: "Secret", Name: "default/key", State: status.Accepted, Pods: pods},
			{Kind: "ConfigMap", Name: "default/settings-of-the-web-server", State: status.Accepted, Pods: pods[:1]},
			{Kind: "ConfigMap", Name: "kube-system/unused", State: status.Superseded, By: "/m/other.yaml"}}}},
		Leaving: []status.File{{Path: "/m/gone.yaml", Objects: []status.Object{{Kind: "Secret", Name: "default/old"}}}}}
}

// The ConfigMaps and Secrets are listed with the pods that use them.
func TestObjectsAreListed(t *testing.T) {
	socket := clitest.Agent(t, habitPods, habitManifests(), status.Runtime{})
	for _, columns := range []int{80, 140} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			var out bytes.Buffer
			o := Options{Source: client.Source{Socket: socket}, Format: print.Format{Columns: columns}}
			if err := Objects(t.Context(), &out, o); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, out.String())
		})
	}
	for args, want := range map[string]string{
		"objects -o name":                     "configmap/default/settings-of-the-web-server\nconfigmap/kube-system/unused\nsecret/default/key\nsecret/default/old\n",
		"objects -n kube-system --no-headers": "configmap/kube-system/unused   superseded   web.yaml   -\n",
		"objects -n none":                     "No ConfigMaps and Secrets in namespace none.\n",
		"objects -n none -o json":             "[]\n",
		"objects -n kube-system -o yaml":      "- file: web.yaml\n  kind: ConfigMap\n  name: kube-system/unused\n  state: superseded\n",
		"ps -a -q":                            "batch/job\ndefault/web\n",
		"ps -q -n default":                    "default/web\n",
		"wait job --for=delete --timeout 1s":  "",
	} {
		var out bytes.Buffer
		err := execute(t.Context(), nil, &out, &out, append(strings.Fields(args), "--socket", socket)...)
		if got := out.String(); err != nil && want != "" || got != want {
			t.Errorf("%s: %v\n%s", args, err, got)
		}
		if code := command.ExitCode(err); want == "" && code != command.ExitLate {
			t.Errorf("%s: exit code %d: %v", args, code, err)
		}
	}
}

func habitNode() *v1.Node {
	quantities := func(cpu, memory, disk, pods string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory),
			v1.ResourceEphemeralStorage: resource.MustParse(disk), v1.ResourcePods: resource.MustParse(pods), "hugepages-2Mi": resource.MustParse("0")}
	}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{"kubernetes.io/os": "linux"}}}
	n.Status.Capacity, n.Status.Allocatable = quantities("4", "8G", "100G", "110"), quantities("3800m", "7G", "90G", "110")
	n.Status.NodeInfo = v1.NodeSystemInfo{ContainerRuntimeVersion: "containerd://2.4.0", KernelVersion: "6.1.0", OSImage: "Debian 12", Architecture: "amd64"}
	n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.7"}, {Type: v1.NodeHostName, Address: "node1"}}
	since := metav1.NewTime(clitest.Now.Add(-90 * time.Minute))
	n.Status.Conditions = []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, LastTransitionTime: since, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue, LastTransitionTime: since, Reason: "KubeletHasDiskPressure",
			Message: "disk pressure: 12% of 40 GB is left on the disk at /var/lib/containerd, less than the 15% of evictionHard imagefs.available: make room there"},
		{Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: since, Reason: "KubeletReady", Message: "kubelet is posting ready status"}}
	return n
}

// What `describe node` tells is what the node has, what is reserved of it and what pods request.
func TestTheNodeIsDescribed(t *testing.T) {
	store := clitest.Store(t, filepath.Join(t.TempDir(), "status"), clitest.Pods(t, habitPods)...)
	store.SetManifests(habitManifests())
	store.SetNode(habitNode())
	socket := clitest.Serve(t, server.Config{Store: store})
	for _, columns := range []int{80, 140} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			var out bytes.Buffer
			o := DescribeOptions{Options: Options{Source: client.Source{Socket: socket}, Format: print.Format{Columns: columns, Now: clitest.Now}}, Pods: []string{"node"}}
			if err := Describe(t.Context(), &out, o); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, out.String())
		})
	}
	for args, want := range map[string]string{
		"describe node node1 -o json": "", "describe node/node1": "", "describe nodes": "",
		"describe node node2":   "there is no node node2: this one is node1",
		"describe node node1 x": `there is one node, got "x" too`,
	} {
		var out bytes.Buffer
		err := execute(t.Context(), nil, &out, &out, append(strings.Fields(args), "--socket", socket)...)
		if got := clitest.Text(err); got != want || want == "" && !strings.Contains(out.String(), "node1") {
			t.Errorf("%s: %s\n%s", args, got, out.String())
		}
	}
}

// Only the events that were asked for are shown.
func TestEventsAreChosen(t *testing.T) {
	root := leave(t, "", status.Manifests{}, someEvents())
	options := func(pod string, since time.Duration, types ...string) EventsOptions {
		source := Options{Source: client.Source{Socket: "/nowhere/s", Root: root}, Format: print.Format{Now: now}}
		return EventsOptions{Options: source, Pod: pod, Since: since, Types: types}
	}
	for name, o := range map[string]EventsOptions{
		"of a pod":                    options("web", 0),
		"of a pod lately":             options("web", time.Minute),
		"warnings of a pod":           options("web", 0, "Warning"),
		"warnings of all pods lately": options("", time.Minute, "Warning"),
	} {
		for _, columns := range []int{80, 140} {
			t.Run(fmt.Sprintf("%s at %d", name, columns), func(t *testing.T) {
				var out, notes bytes.Buffer
				o.Columns, o.Err = columns, &notes
				if err := Events(t.Context(), &out, o); err != nil {
					t.Fatal(err)
				}
				clitest.Golden(t, out.String())
			})
		}
	}
	for args, want := range map[string]string{
		"events web --for web": `name the pod once: "web" or --for web`,
		"events --types bad":   `--types "bad": choose Normal or Warning`,
		"events --since -1s":   "--since -1s: give a time that is over, such as 5m",
		"ps -q -o json":        "-q and -o json exclude each other",
		"logs -A -n a":         "-A and -n exclude each other",
	} {
		err := execute(t.Context(), nil, &bytes.Buffer{}, &bytes.Buffer{}, strings.Fields(args)...)
		if got := clitest.Text(err); got != want || command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// The disks of the node are told with how full they are.
func TestDisksOfTheNodeAreDescribed(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	fs := &statsapi.FsStats{CapacityBytes: n(100e9), AvailableBytes: n(25e9), UsedBytes: n(1e9), InodesFree: n(1000)}
	var out bytes.Buffer
	facts := print.NodeFacts{Node: habitNode(), Stats: &statsapi.NodeStats{Fs: fs, Runtime: &statsapi.RuntimeStats{ImageFs: fs}}}
	print.DescribeNode(&out, facts, print.Format{Now: clitest.Now, Columns: 80})
	want := `Disks:
  DISK               SIZE     USED          FREE    INODES FREE
  volumes and logs   100 GB   75 GB (75%)   25 GB   1000
  images             100 GB   75 GB (75%)   25 GB   1000
Pods:               <none>
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s", out.String())
	}
}

// The devices of the node are told with the containers that have them.
func TestDevicesOfTheNodeAreDescribed(t *testing.T) {
	n := habitNode()
	status.SetDevices(n, []status.Device{
		{Resource: "example.com/serial", Device: "/dev/ttyUSB0", Holders: []string{"default/a-n/c", "default/b-n/c"}},
		{Resource: "example.com/serial", Device: "/dev/ttyUSB1", Missing: true, Holders: []string{"default/d-n/c"}},
		{Resource: "example.com/serial", Device: "/dev/ttyUSB2"},
	})
	var out bytes.Buffer
	print.DescribeNode(&out, print.NodeFacts{Node: n}, print.Format{Now: clitest.Now, Columns: 100})
	want := `Devices:
  RESOURCE             DEVICE                CONTAINERS
  example.com/serial   /dev/ttyUSB0          default/a-n/c, default/b-n/c
  example.com/serial   /dev/ttyUSB1 (gone)   default/d-n/c
  example.com/serial   /dev/ttyUSB2          -
Pods:               <none>
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s", out.String())
	}
}
