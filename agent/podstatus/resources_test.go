package podstatus_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podstatus"
)

func TestResourcesAreTheRuntimesWhereItRuns(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		l := v1.ResourceList{}
		for k := 0; k < len(pairs); k += 2 {
			l[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
		}
		return l
	}
	for _, row := range []struct {
		name             string
		requests, limits v1.ResourceList
		linux            *rt.LinuxContainerResources
		want             string
	}{
		{"as the manifest says", list("cpu", "100m", "memory", "1Gi"), list("cpu", "1", "memory", "2Gi"),
			&rt.LinuxContainerResources{CpuShares: 102, CpuQuota: 100000, CpuPeriod: 100000, MemoryLimitInBytes: 2 << 30}, "100m 1Gi 1 2Gi"},
		{"otherwise", list("cpu", "100m", "memory", "1Gi"), list("cpu", "1", "memory", "2Gi"),
			&rt.LinuxContainerResources{CpuShares: 512, CpuQuota: 50000, CpuPeriod: 100000, MemoryLimitInBytes: 3 << 30}, "500m 1Gi 500m 3Gi"},
		{"what the manifest does not limit stays so", list("cpu", "100m"), nil, &rt.LinuxContainerResources{CpuShares: 102, MemoryLimitInBytes: 1 << 30}, "100m - - -"},
		{"too little for the kernel to tell", list("cpu", "1m"), list("cpu", "5m"), &rt.LinuxContainerResources{CpuShares: 2, CpuQuota: 1000, CpuPeriod: 100000}, "1m - 5m -"},
		{"a limit that the kernel rounds", nil, list("cpu", "10m"), &rt.LinuxContainerResources{CpuQuota: 500, CpuPeriod: 100000}, "- - 10m -"},
		{"a limit alone", nil, list("memory", "2Gi"), &rt.LinuxContainerResources{MemoryLimitInBytes: 1 << 30}, "- - - 1Gi"},
		{"the runtime does not say", list("cpu", "100m"), list("memory", "2Gi"), &rt.LinuxContainerResources{}, "100m - - 2Gi"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &v1.Container{Resources: v1.ResourceRequirements{Requests: row.requests, Limits: row.limits}}
			n := up("c", 0)
			n.Status = &rt.ContainerStatus{Resources: &rt.ContainerResources{Linux: row.linux}}
			has, promised := podstatus.ResourcesOf(c, &n)
			var got []string
			for _, l := range []v1.ResourceList{has.Requests, has.Limits} {
				for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
					if q, ok := l[name]; ok {
						got = append(got, q.String())
					} else {
						got = append(got, "-")
					}
				}
			}
			if strings.Join(got, " ") != row.want || len(promised) != len(row.requests) {
				t.Errorf("got %v, promised %v; want %s", got, promised, row.want)
			}
			n.State = rt.ContainerState_CONTAINER_EXITED
			if has, _ := podstatus.ResourcesOf(c, &n); !has.Requests.Cpu().Equal(*row.requests.Cpu()) {
				t.Errorf("one that does not run has %v", has)
			}
		})
	}
}
