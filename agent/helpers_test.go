package agent

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/podspec"
)

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func somePod(change ...func(*v1.Pod)) *v1.Pod {
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

func someHost() *podspec.Host {
	return &podspec.Host{
		Name: "node1", Instance: "i1", Root: "/var/lib/monopod", PodLogs: "/var/log/pods", HostIPs: []string{"192.0.2.2"},
		Resolv: podspec.ResolvConf{Servers: []string{"10.0.0.10"}, Searches: []string{"corp.example"}, Options: []string{"ndots:1"}},
		Memory: 1 << 30, HugePageSizes: []string{"2MB", "1GB"},
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

func someResources(cpuRequest, cpuLimit, memoryRequest, memoryLimit string) v1.ResourceRequirements {
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

func amounts(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for k := 0; k < len(pairs); k += 2 {
		out[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
	}
	return out
}
