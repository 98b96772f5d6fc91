package podspec

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestWholeCPUsOfAGuaranteedPodAreItsOwn(t *testing.T) {
	amounts := func(cpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Mi")}
	}
	for _, row := range []struct {
		name, request, limit string
		change               func(*v1.Pod)
		own                  int
	}{
		{"a whole number", "2", "2", nil, 2},
		{"in thousandths", "3000m", "3", nil, 3},
		{"not whole", "1500m", "1500m", nil, 0},
		{"Burstable", "2", "3", nil, 0},
		{"resources of the pod", "2", "2", func(p *v1.Pod) {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("2"), Limits: amounts("2")}
		}, 0},
		{"beside a container that shares", "2", "2", func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b", Resources: v1.ResourceRequirements{Requests: amounts("500m"), Limits: amounts("500m")}})
		}, 2},
		{"beside one without limits", "2", "2", func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b"}) }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &v1.Pod{}
			p.Spec.Containers = []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{Requests: amounts(row.request), Limits: amounts(row.limit)}}}
			if row.change != nil {
				row.change(p)
			}
			c := &p.Spec.Containers[0]
			if got := OwnCPUs(p, c); got != row.own {
				t.Errorf("%d of its own", got)
			}
			shared, n := &Host{}, &Host{ExclusiveCPUs: true}
			limit := func(n *Host) [3]int64 {
				return [3]int64{ContainerResources(p, c, n).CpuQuota, sandboxResources(p, n).CpuQuota, PodCgroup(p, n).Quota}
			}
			want := limit(shared)
			if row.own > 0 {
				want = [3]int64{-1, -1, -1}
			}
			if got := limit(n); got != want {
				t.Errorf("quotas %v, not %v", got, want)
			}
			n.NoCFSQuota = true
			if ContainerResources(p, c, n).CpuQuota != 0 {
				t.Error("a quota where none is enforced")
			}
		})
	}
}
