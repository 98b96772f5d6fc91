package podspec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
	"monopod/manifests"
)

// specPod is a defaulted pod "web" of node1 with one container "main".
func specPod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-node1", Namespace: "default", UID: "u1"},
		Spec: v1.PodSpec{
			NodeName:                      "node1",
			DNSPolicy:                     v1.DNSClusterFirst,
			TerminationGracePeriodSeconds: new(int64(30)),
			SecurityContext:               &v1.PodSecurityContext{},
			Containers: []v1.Container{{
				Name: "main", Image: "busybox:1",
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
			}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func specNode() *Host {
	return &Host{
		Name: "node1", Instance: "i1", Root: "/var/lib/monopod", PodLogs: "/var/log/pods", HostIPs: []string{"192.0.2.2"},
		Resolv: ResolvConf{Servers: []string{"10.0.0.10"}, Searches: []string{"corp.example"}, Options: []string{"ndots:1"}},
		Memory: 1 << 30, HugePageSizes: []string{"2MB", "1GB"},
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

func resources(cpuRequest, cpuLimit, memoryRequest, memoryLimit string) v1.ResourceRequirements {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	set := func(l v1.ResourceList, name v1.ResourceName, s string) {
		if s != "" {
			l[name] = resource.MustParse(s)
		}
	}
	set(r.Requests, v1.ResourceCPU, cpuRequest)
	set(r.Limits, v1.ResourceCPU, cpuLimit)
	set(r.Requests, v1.ResourceMemory, memoryRequest)
	set(r.Limits, v1.ResourceMemory, memoryLimit)
	return r
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestContainerHashIsTheKubelets(t *testing.T) {
	for _, c := range []struct{ name, image, want string }{
		{"nginx", "nginx:1.25", "5d0e8bc9"},
		{"busybox", "busybox", "8f4f3c6c"},
		{"pause", "registry.k8s.io/pause:3.10", "28ed4cd7"},
		{"a", "b&c<d>", "c0de3f4e"},
	} {
		if got := ContainerHash(&v1.Container{Name: c.name, Image: c.image}); got != c.want {
			t.Errorf("hash of %s, %s = %s, want %s", c.name, c.image, got, c.want)
		}
	}
}

func TestLogNames(t *testing.T) {
	p := specPod()
	if got := LogDirectory("/var/log/pods", p); got != "/var/log/pods/default_web-node1_u1" {
		t.Error(got)
	}
	if got := LogPath("main", 3); got != "main/3.log" {
		t.Error(got)
	}
	if got := LogLink("/var/log/containers", manifests.KeyOf(p), "main", "c1"); got != "/var/log/containers/web-node1_default_main-c1.log" {
		t.Error(got)
	}
	fits := 251 - len("_default_main-c1")
	p.Name = strings.Repeat("x", fits)
	if got, want := LogLink("/var/log/containers", manifests.KeyOf(p), "main", "c1"), "/var/log/containers/"+p.Name+"_default_main-c1.log"; got != want {
		t.Error("a name that fits is cut:", got)
	}
	p.Name = strings.Repeat("x", fits+1)
	if got, want := LogLink("/var/log/containers", manifests.KeyOf(p), "main", "c1"), "/var/log/containers/"+p.Name+"_default_main-c.log"; got != want {
		t.Error("a name that does not fit is not cut:", got)
	}
}

func TestIdentity(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		p.Labels = map[string]string{"app": "x", LabelPodUID: "forged", LabelInstance: "forged"}
		p.Annotations = map[string]string{"k": "v"}
		c := &p.Spec.Containers[0]
		c.Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 8080, Protocol: "TCP"}}
		c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}}}
	})
	s, err := SandboxConfig(p, 2, specNode())
	if err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{"app": "x", LabelPodName: "web-node1", LabelPodNamespace: "default", LabelPodUID: "u1", LabelInstance: "i1"}
	if !reflect.DeepEqual(s.Labels, wantLabels) || !reflect.DeepEqual(s.Annotations, p.Annotations) || s.Metadata.Attempt != 2 {
		t.Errorf("sandbox: labels %v annotations %v attempt %d", s.Labels, s.Annotations, s.Metadata.Attempt)
	}
	c, err := ContainerConfig(p, &p.Spec.Containers[0], Input{Attempt: 4, BackOff: "20s", Image: "sha256:1"}, specNode())
	if err != nil {
		t.Fatal(err)
	}
	wantAnnotations := map[string]string{
		AnnHash: ContainerHash(&p.Spec.Containers[0]), annRestartCount: "4", AnnBackoff: "20s", AnnTerminationGrace: "30",
		AnnMessagePath: "/dev/termination-log", annMessagePolicy: "File", AnnPreStop: `{"sleep":{"seconds":1}}`,
		AnnPorts: `[{"hostPort":80,"containerPort":8080,"protocol":"TCP"}]`,
	}
	if !reflect.DeepEqual(c.Annotations, wantAnnotations) {
		t.Errorf("container: annotations %v, want %v", c.Annotations, wantAnnotations)
	}
	delete(wantLabels, "app")
	wantLabels[labelContainerName] = "main"
	if !reflect.DeepEqual(c.Labels, wantLabels) || c.LogPath != "main/4.log" || c.Image.Image != "sha256:1" || c.Image.UserSpecifiedImage != "busybox:1" {
		t.Errorf("container: labels %v log %s image %v", c.Labels, c.LogPath, c.Image)
	}
}

func TestMountsKeepTheirOrder(t *testing.T) {
	in := Input{
		PodIPs:   []string{"10.1.0.2"},
		Volumes:  map[string]volume.Mount{"d": {HostPath: "/d", Managed: true}, "ro": {HostPath: "/ro", ReadOnly: true}},
		SubPaths: map[int]string{2: "/sub"}, HostsPath: "/hosts", TerminationLogPath: "/term",
	}
	for _, c := range []struct {
		name   string
		mounts []v1.VolumeMount
		change func(*Input)
		want   string // container path=host path of each
		err    string
	}{
		{"in the order of the manifest", []v1.VolumeMount{{Name: "ro", MountPath: "/z"}, {Name: "d", MountPath: "rel/a"}, {Name: "d", MountPath: "/s", SubPath: "x"}}, nil,
			"/z=/ro:ro /rel/a=/d /s=/sub /etc/hosts=/hosts /dev/termination-log=/term", ""},
		{"own /etc/hosts wins", []v1.VolumeMount{{Name: "d", MountPath: "/etc/hosts", ReadOnly: true}}, nil, "/etc/hosts=/d:ro /dev/termination-log=/term", ""},
		{"no address, no /etc/hosts", nil, func(in *Input) { in.PodIPs = nil }, "/dev/termination-log=/term", ""},
		{"a resolv.conf that follows the machine's", nil, func(in *Input) { in.ResolvPath = "/resolv" }, "/etc/hosts=/hosts /etc/resolv.conf=/resolv /dev/termination-log=/term", ""},
		{"own /etc/resolv.conf wins", []v1.VolumeMount{{Name: "d", MountPath: "/etc/resolv.conf"}}, func(in *Input) { in.ResolvPath = "/resolv" }, "/etc/resolv.conf=/d /etc/hosts=/hosts /dev/termination-log=/term", ""},
		{"no termination log", nil, func(in *Input) { in.TerminationLogPath = "" }, "/etc/hosts=/hosts", ""},
		{"unknown volume", []v1.VolumeMount{{Name: "nope", MountPath: "/x"}}, nil, "", `cannot find volume "nope" to mount into container "main"`},
		{"subPath that nobody prepared", []v1.VolumeMount{{Name: "d", MountPath: "/x", SubPath: "y"}}, nil, "", `failed to prepare subPath for volumeMount "d" of container "main"`},
		{"recursive read-only needs the runtime", []v1.VolumeMount{{Name: "d", MountPath: "/x", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)}}, nil, "",
			`volume "d" requested recursive read-only mode, but it is not supported by the runtime`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := in
			if c.change != nil {
				c.change(&in)
			}
			p := specPod(func(p *v1.Pod) { p.Spec.Containers[0].VolumeMounts = c.mounts })
			mounts, err := containerMounts(p, &p.Spec.Containers[0], in, specNode())
			var got []string
			for _, m := range mounts {
				s := m.ContainerPath + "=" + m.HostPath
				if m.Readonly {
					s += ":ro"
				}
				got = append(got, s)
			}
			if strings.Join(got, " ") != c.want || errText(err) != c.err {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestSubPathsExpandTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name  string
		mount v1.VolumeMount
		want  map[int]string
		err   string
	}{
		{"none", v1.VolumeMount{}, map[int]string{}, ""},
		{"plain, with a dollar", v1.VolumeMount{SubPath: "a/$(N)"}, map[int]string{0: "a/$(N)"}, ""},
		{"expanded", v1.VolumeMount{SubPathExpr: "x-$(N)"}, map[int]string{0: "x-web-node1"}, ""},
		{"unset", v1.VolumeMount{SubPathExpr: "$(Z)/$(Q)/$(Z)"}, nil, "missing value for Q, Z"},
		{"empty", v1.VolumeMount{SubPathExpr: "$(E)"}, nil, "missing value for E"},
		{"out of the volume", v1.VolumeMount{SubPathExpr: "$(UP)/x"}, nil, `subPath of volumeMount "" of container "main" must be a relative path without '..'`},
		{"absolute", v1.VolumeMount{SubPathExpr: "$(ABS)"}, nil, `subPath of volumeMount "" of container "main" must be a relative path without '..'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{c.mount}
				p.Spec.Containers[0].Env = []v1.EnvVar{
					{Name: "N", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					{Name: "E"}, {Name: "UP", Value: ".."}, {Name: "ABS", Value: "/etc"},
				}
			})
			got, err := SubPaths(p, &p.Spec.Containers[0], Input{}, specNode())
			if !reflect.DeepEqual(got, c.want) || errText(err) != c.err {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestPortsOfRegularContainersAreMappedOnce(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "i", Ports: []v1.ContainerPort{{ContainerPort: 1}}}}
		p.Spec.Containers[0].Ports = []v1.ContainerPort{
			{ContainerPort: 80, HostPort: 8080, Protocol: "TCP"}, {ContainerPort: 80, HostPort: 8080, Protocol: "TCP"},
			{Name: "dns", ContainerPort: 53, Protocol: "UDP", HostIP: "127.0.0.1"}, {Name: "dns", ContainerPort: 54, Protocol: "UDP"},
			{ContainerPort: 9, Protocol: "SCTP"},
		}
	})
	want := []*rt.PortMapping{
		{ContainerPort: 80, HostPort: 8080},
		{ContainerPort: 53, Protocol: rt.Protocol_UDP, HostIp: "127.0.0.1"},
		{ContainerPort: 9, Protocol: rt.Protocol_SCTP},
	}
	if got := portMappings(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestStopSignal(t *testing.T) {
	for name, want := range map[v1.Signal]rt.Signal{
		v1.SIGUSR1: rt.Signal_SIGUSR1, v1.SIGRTMINPLUS1: rt.Signal_SIGRTMINPLUS1, v1.SIGRTMAXMINUS14: rt.Signal_SIGRTMAXMINUS14,
	} {
		if got := stopSignal(&v1.Container{Lifecycle: &v1.Lifecycle{StopSignal: &name}}); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := stopSignal(&v1.Container{}); got != rt.Signal_RUNTIME_DEFAULT {
		t.Error(got)
	}
}

func TestHostNamespaces(t *testing.T) {
	yes := new(true)
	for _, c := range []struct {
		name   string
		change func(*v1.PodSpec)
		want   *rt.NamespaceOption
	}{
		{"own", func(*v1.PodSpec) {}, &rt.NamespaceOption{Pid: rt.NamespaceMode_CONTAINER}},
		{"host", func(s *v1.PodSpec) { s.HostNetwork, s.HostPID, s.HostIPC = true, true, true },
			&rt.NamespaceOption{Network: rt.NamespaceMode_NODE, Pid: rt.NamespaceMode_NODE, Ipc: rt.NamespaceMode_NODE}},
		{"shared pid", func(s *v1.PodSpec) { s.ShareProcessNamespace = yes }, &rt.NamespaceOption{Pid: rt.NamespaceMode_POD}},
	} {
		got := namespaces(specPod(func(p *v1.Pod) { c.change(&p.Spec) }))
		if got.Network != c.want.Network || got.Pid != c.want.Pid || got.Ipc != c.want.Ipc || got.UsernsOptions.Mode != rt.NamespaceMode_NODE {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestSandboxesDoNotShareTheNodesSlices(t *testing.T) {
	n := specNode()
	p := specPod(func(p *v1.Pod) {
		p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"a"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("9")}}}
	})
	DnsConfig(p, n)
	if !slices.Equal(n.Resolv.Options, []string{"ndots:1"}) || !slices.Equal(n.Resolv.Servers, []string{"10.0.0.10"}) {
		t.Errorf("a pod changed the node's resolv.conf: %v", n.Resolv)
	}
}

func TestAContainerWithoutPortsRecordsNone(t *testing.T) {
	p := specPod()
	for want, ports := range map[string][]v1.ContainerPort{"": nil, `[{"containerPort":80}]`: {{ContainerPort: 80}}} {
		c := &p.Spec.Containers[0]
		c.Ports = ports
		config, err := ContainerConfig(p, c, Input{}, specNode())
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Annotations[AnnPorts]; got != want {
			t.Errorf("ports %v: recorded %q", ports, got)
		}
	}
}
