package podspec

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestContainerResources(t *testing.T) {
	pod := resources("200m", "400m", "64Mi", "96Mi")
	for _, c := range []struct {
		name                           string
		own                            v1.ResourceRequirements
		pod                            *v1.ResourceRequirements
		shares, quota, memory, oomLeft int64
	}{
		{"nothing", resources("", "", "", ""), nil, 2, 0, 0, 1000},
		{"request and limit", resources("100m", "1", "16Mi", "128Mi"), nil, 102, 100000, 128 << 20, 985},
		{"a limit alone gives the weight", resources("", "500m", "", ""), nil, 512, 50000, 0, 999},
		{"a request of nothing does not", resources("0", "500m", "", ""), nil, 2, 50000, 0, 999},
		{"guaranteed", resources("500m", "500m", "64Mi", "64Mi"), nil, 512, 50000, 64 << 20, -997},
		{"the pod limits what the container does not", resources("100m", "", "32Mi", ""), &pod, 102, 40000, 96 << 20, 938},
		{"all of the node's memory", resources("", "", "1Gi", ""), nil, 2, 0, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) { p.Spec.Containers[0].Resources, p.Spec.Resources = c.own, c.pod })
			r := containerResources(p, &p.Spec.Containers[0], specNode())
			if r.CpuShares != c.shares || r.CpuQuota != c.quota || r.CpuPeriod != 100000 || r.MemoryLimitInBytes != c.memory || r.OomScoreAdj != c.oomLeft || r.Unified != nil || r.MemorySwapLimitInBytes != 0 {
				t.Errorf("got %v", r)
			}
		})
	}
}

func TestOOMScores(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	p := specPod(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: &always, Resources: resources("", "", "16Mi", "")}, {Name: "init", Resources: resources("", "", "16Mi", "")}}
		p.Spec.Containers[0].Resources = resources("", "", "256Mi", "")
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b", Resources: resources("", "", "512Mi", "")})
	})
	for name, want := range map[string]int64{"side": 750, "init": 985, "main": 750, "b": 500} {
		if got := oomScoreAdj(p, containerNamed(p, name), specNode()); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	p.Spec.Resources = new(resources("", "", "800Mi", "")) // 16Mi more than what runs at a time, for four of them
	for name, want := range map[string]int64{"side": 747, "init": 981, "main": 747, "b": 497} {
		if got := oomScoreAdj(p, containerNamed(p, name), specNode()); got != want {
			t.Errorf("%s of a pod that requests more as a whole: got %d, want %d", name, got, want)
		}
	}
	n := specNode()
	n.Memory = 0
	if got := oomScoreAdj(p, containerNamed(p, "b"), n); got != 1000 {
		t.Errorf("on a machine of unknown memory: got %d", got)
	}
	p.Spec.PriorityClassName = "system-node-critical"
	if got := oomScoreAdj(p, containerNamed(p, "b"), specNode()); got != -997 {
		t.Errorf("node-critical: got %d", got)
	}
}

func TestSwapAndOOMGroup(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Host)
		unified map[string]string
		swap    int64
	}{
		{"v1", func(*Host) {}, nil, 0},
		{"v1 that limits swap", func(n *Host) { n.SwapController = true }, nil, 64 << 20},
		{"v2", func(n *Host) { n.CgroupV2 = true }, map[string]string{"memory.oom.group": "1"}, 0},
		{"v2 that limits swap", func(n *Host) { n.CgroupV2, n.SwapController = true, true }, map[string]string{"memory.oom.group": "1", "memory.swap.max": "0"}, 0},
		{"v2, one process dies", func(n *Host) { n.CgroupV2, n.SwapController, n.SingleProcessOOMKill = true, true, true }, map[string]string{"memory.swap.max": "0"}, 0},
	} {
		n := specNode()
		c.change(n)
		p := specPod(func(p *v1.Pod) { p.Spec.Containers[0].Resources = resources("", "", "", "64Mi") })
		r := containerResources(p, &p.Spec.Containers[0], n)
		if !maps.Equal(r.Unified, c.unified) || r.MemorySwapLimitInBytes != c.swap {
			t.Errorf("%s: got %v", c.name, r)
		}
		if s := sandboxResources(p, n); s.Unified["memory.swap.max"] != "" || s.Unified["memory.oom.group"] != c.unified["memory.oom.group"] || s.OomScoreAdj != 0 {
			t.Errorf("%s: sandbox got %v", c.name, s)
		}
	}
}

func TestCFSQuotaSettings(t *testing.T) {
	n := specNode()
	n.CFSPeriod = 50000
	l := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	if r := cpuAndMemory(nil, l, n); r.CpuPeriod != 50000 || r.CpuQuota != 100000 {
		t.Errorf("period: got %v", r)
	}
	n.NoCFSQuota = true
	if r := cpuAndMemory(nil, l, n); r.CpuPeriod != 0 || r.CpuQuota != 0 || r.CpuShares != 2048 {
		t.Errorf("off: got %v", r)
	}
}

func TestHugepages(t *testing.T) {
	l := v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi"), "hugepages-64Ki": resource.MustParse("64Ki")}
	got := hugepageLimits(l, specNode())
	if len(got) != 2 || got[0].PageSize != "2MB" || got[0].Limit != 4<<20 || got[1].PageSize != "1GB" || got[1].Limit != 0 {
		t.Errorf("got %v", got)
	}
	for bytes, want := range map[int64]string{64 << 10: "64KB", 2 << 20: "2MB", 32 << 20: "32MB", 1 << 30: "1GB", 16 << 30: "16GB", 1 << 50: "1024TB"} {
		if s := PageSize(bytes); s != want {
			t.Errorf("%d: got %s", bytes, s)
		}
	}
}

func TestSandboxResourcesAreTheMostInUseAtOnce(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	side := v1.Container{Name: "s", RestartPolicy: &always, Resources: resources("200m", "200m", "32Mi", "32Mi")}
	init := v1.Container{Name: "i", Resources: resources("400m", "400m", "64Mi", "64Mi")}
	main := v1.Container{Name: "a", Resources: resources("100m", "100m", "16Mi", "16Mi")}
	for _, c := range []struct {
		name          string
		inits         []v1.Container
		pod           *v1.ResourceRequirements
		milli, memory int64
	}{
		{"alone", nil, nil, 100, 16 << 20},
		{"a bigger init container", []v1.Container{init}, nil, 400, 64 << 20},
		{"a sidecar runs along", []v1.Container{side}, nil, 300, 48 << 20},
		{"an init container beside the sidecar before it", []v1.Container{side, init}, nil, 600, 96 << 20},
		{"an init container before the sidecar", []v1.Container{init, side}, nil, 400, 64 << 20},
		{"the pod as a whole", []v1.Container{side, init}, new(resources("1", "1", "1Gi", "1Gi")), 1000, 1 << 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) {
				p.Spec.InitContainers, p.Spec.Containers, p.Spec.Resources = c.inits, []v1.Container{main}, c.pod
				p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
			})
			s, err := SandboxConfig(p, 0, specNode())
			if err != nil {
				t.Fatal(err)
			}
			want := &rt.LinuxContainerResources{CpuShares: c.milli * 1024 / 1000, CpuQuota: c.milli * 100, CpuPeriod: 100000, MemoryLimitInBytes: c.memory}
			if got := s.Linux.Resources; got.String() != want.String() {
				t.Errorf("got %v, want %v", got, want)
			}
			if o := s.Linux.Overhead; o.CpuShares != 1024 || o.CpuQuota != 100000 {
				t.Errorf("overhead %v", o)
			}
		})
	}
	if a := main.Resources.Requests[v1.ResourceCPU]; a.MilliValue() != 100 {
		t.Errorf("summing up changed the pod: %v", a)
	}
}

// Quantities beyond 63 bits live behind a pointer that plain copies share.
func TestSumsOfHugeQuantities(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	const huge63 = "9000000000000000001"
	huge := resources("", "", "", huge63)
	p := specPod(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "s", RestartPolicy: &always, Resources: huge}, {Name: "i", Resources: huge}}
		p.Spec.Containers[0].Resources = huge
	})
	_, limits := PodResources(p)
	want := resource.MustParse(huge63)
	want.Add(resource.MustParse(huge63))
	if got := limits[v1.ResourceMemory]; got.Cmp(want) != 0 {
		t.Errorf("got %s, want %s", got.String(), want.String())
	}
}

// The day that this fails, PodResources may leave the overhead to the library.
func TestTheLibraryAddsOverheadToThePodsOwn(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		p.Spec.Resources = new(resources("", "", "9000000000000000001", ""))
		p.Spec.Overhead = resources("", "", "1Mi", "").Requests
	})
	was := p.DeepCopy()
	TotalRequests(p)
	if !equality.Semantic.DeepEqual(p, was) {
		t.Error("summing up changed the pod")
	}
	helpers.PodRequests(p, helpers.PodResourcesOptions{})
	if equality.Semantic.DeepEqual(p, was) {
		t.Error("the library leaves the pod as it is now")
	}
}

func TestQOSClass(t *testing.T) {
	for _, c := range []struct {
		name string
		own  v1.ResourceRequirements
		init *v1.ResourceRequirements
		pod  *v1.ResourceRequirements
		want v1.PodQOSClass
	}{
		{"nothing", resources("", "", "", ""), nil, nil, v1.PodQOSBestEffort},
		{"zeros", resources("0", "0", "0", ""), nil, nil, v1.PodQOSBestEffort},
		{"a request", resources("1m", "", "", ""), nil, nil, v1.PodQOSBurstable},
		{"all limits", resources("1", "1", "1Mi", "1Mi"), nil, nil, v1.PodQOSGuaranteed},
		{"request below limit", resources("1", "2", "1Mi", "1Mi"), nil, nil, v1.PodQOSBurstable},
		{"no memory", resources("1", "1", "", ""), nil, nil, v1.PodQOSBurstable},
		{"an init container without", resources("1", "1", "1Mi", "1Mi"), new(resources("", "", "", "")), nil, v1.PodQOSBurstable},
		{"the pod as a whole counts alone", resources("1", "", "", ""), nil, new(resources("1", "1", "1Mi", "1Mi")), v1.PodQOSGuaranteed},
		{"an empty whole hides containers", resources("1", "", "", ""), nil, new(resources("", "", "", "")), v1.PodQOSBestEffort},
	} {
		p := specPod(func(p *v1.Pod) {
			p.Spec.Containers[0].Resources, p.Spec.Resources = c.own, c.pod
			if c.init != nil {
				p.Spec.InitContainers = []v1.Container{{Name: "i", Resources: *c.init}}
			}
		})
		if got := QosClass(p); got != c.want {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
	p := specPod(func(p *v1.Pod) { p.Status.QOSClass = v1.PodQOSGuaranteed })
	if got := QosClass(p); got != v1.PodQOSGuaranteed {
		t.Errorf("set in the status: got %s", got)
	}
}

// Each amount becomes at least that of the other list, which is not changed.
func TestRaise(t *testing.T) {
	a, b := resources("1", "", "2Mi", "").Requests, resources("2", "", "1Mi", "").Requests
	b["example.com/gpu"] = resource.MustParse("3")
	Raise(a, b)
	for name, want := range map[v1.ResourceName]string{"cpu": "2", "memory": "2Mi", "example.com/gpu": "3"} {
		if got := a[name]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: got %s", name, got.String())
		}
	}
	if got := b[v1.ResourceMemory]; got.Cmp(resource.MustParse("1Mi")) != 0 {
		t.Errorf("the other list has %s", got.String())
	}
}

func TestVolumeMemory(t *testing.T) {
	p := specPod()
	if got := volumeMemory(p, specNode()); got != 1<<30 {
		t.Errorf("no limit: got %d", got)
	}
	p.Spec.Containers[0].Resources = resources("", "", "", "64Mi")
	if got := volumeMemory(p, specNode()); got != 64<<20 {
		t.Errorf("limited: got %d", got)
	}
	p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b"})
	if got := volumeMemory(p, specNode()); got != 1<<30 {
		t.Errorf("one of two limited: got %d", got)
	}
	n := specNode()
	n.Allocatable = v1.ResourceList{v1.ResourceMemory: resource.MustParse("512Mi")}
	if got := volumeMemory(specPod(), n); got != 512<<20 {
		t.Errorf("a node that keeps some for itself: got %d", got)
	}
	n.Allocatable = nil
	if got := volumeMemory(specPod(), n); got != 1<<30 {
		t.Errorf("a node that does not say what it keeps: got %d", got)
	}
}
