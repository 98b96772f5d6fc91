package podspec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/admission"
	"monopod/agent/e2e/golden"
	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/manifests"
)

// FuzzSpec: what an accepted pod becomes towards the runtime is the same each
// time, can be sent, and names nothing outside of the agent's own folders.
func FuzzSpec(f *testing.F) {
	recordings, err := filepath.Glob("../../testdata/golden/cgroup*.json")
	if err != nil || len(recordings) == 0 {
		f.Fatalf("no golden manifests: %v", err)
	}
	for _, path := range recordings {
		cases, err := golden.Read(filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".json"))
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			f.Add([]byte(c.Manifest))
		}
	}
	demo, _ := filepath.Glob("../../testdata/manifests/*.yaml")
	for _, path := range demo {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	for _, spec := range []string{
		"hostname: a, subdomain: b, setHostnameAsFQDN: true, containers: [{name: c, image: i, command: ['$(A)'], env: [{name: A, value: $(B)}], volumeMounts: [{name: v, mountPath: x, subPathExpr: $(A)}]}], volumes: [{name: v}]",
		"overhead: {cpu: 1}, resources: {limits: {cpu: 9, memory: 9E}}, containers: [{name: c, image: i, lifecycle: {preStop: {sleep: {seconds: 1}}}, resources: {limits: {hugepages-1Gi: 2Gi, memory: 1}}}]",
		"os: {name: linux}, securityContext: {sysctls: [{name: net/a.b/c, value: '1'}], seLinuxOptions: {level: s0}, windowsOptions: {}}, containers: [{name: c, image: i, securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/b}}, lifecycle: {stopSignal: SIGRTMIN+1}}]",
	} {
		f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {" + spec + "}\n"))
	}
	host := &podspec.Host{
		Name: "node1", Instance: "i1", Root: "/var/lib/monopod", PodLogs: "/var/log/pods", HostIPs: []string{"192.0.2.2"},
		Resolv: podspec.ResolvConf{Servers: []string{"10.0.0.10"}, Searches: []string{"corp.example"}, Options: []string{"ndots:1"}},
		Memory: 1 << 30, HugePageSizes: []string{"2MB", "1GB"},
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pods, _ := manifests.Decode("/m/x.yaml", data, manifests.Options{NodeName: "node1", NameSuffix: true, RuntimeClasses: map[string]string{"a": "b"}})
		for _, p := range pods {
			for k, n := range []*podspec.Host{host, {CgroupV2: true, SwapController: true, SeccompDefault: true, SELinux: true, Name: "node1"}} {
				saySpec(t, p.Pod, n, k == 1)
			}
			table := admission.NewTable(node.Facts{}, nil, nil)
			if table.Room(p) == nil {
				table.Take(p)
			}
		}
	})
}

// saySpec says all of a pod in the runtime's terms.
func saySpec(t *testing.T, p *v1.Pod, n *podspec.Host, rro bool) {
	t.Helper()
	if dir := podspec.LogDirectory(n.PodLogs, p); filepath.Dir(dir) != filepath.Clean(n.PodLogs) {
		t.Errorf("the logs are in %q", dir)
	}
	twice(t, func() (*rt.PodSandboxConfig, error) { return podspec.SandboxConfig(p, 1, n) })
	podspec.PodCgroup(p, n)
	podspec.EtcHosts(p, []string{"10.88.0.2"}, n)
	in := podspec.Input{Attempt: 2, Image: "sha256:0", ImageUID: new(int64(0)), PodIPs: []string{"10.88.0.2", "fd00::2"},
		Volumes: map[string]volume.Mount{}, VolumeImages: map[string]string{}, HostsPath: "/h", TerminationLogPath: "/t", RecursiveReadOnly: rro}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			in.VolumeImages[v.Name] = "sha256:1"
		} else {
			in.Volumes[v.Name] = volume.Mount{HostPath: "/v/" + v.Name}
		}
	}
	for _, c := range podspec.AllContainers(p) {
		paths, err := podspec.SubPaths(p, c, in, n)
		for _, path := range paths {
			if !filepath.IsLocal(path) && filepath.Clean(path) != "." {
				t.Errorf("the subPath %q leads out", path)
			}
		}
		if err != nil {
			continue
		}
		in.SubPaths = paths
		if log := podspec.LogPath(c.Name, in.Attempt); !filepath.IsLocal(log) {
			t.Errorf("the log is %q", log)
		}
		twice(t, func() (*rt.ContainerConfig, error) { return podspec.ContainerConfig(p, c, in, n) })
	}
}

// twice makes a message two times: both are the same, and can be sent.
func twice[M proto.Message](t *testing.T, build func() (M, error)) {
	t.Helper()
	a, err := build()
	b, again := build()
	if fmt.Sprint(err) != fmt.Sprint(again) {
		t.Fatalf("once %v, then %v", err, again)
	}
	if err != nil {
		return
	}
	if !proto.Equal(a, b) {
		t.Errorf("once %v, then %v", a, b)
	}
	if _, err := proto.Marshal(a); err != nil {
		t.Errorf("it cannot be sent: %v", err)
	}
}
