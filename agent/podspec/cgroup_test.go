package podspec

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestTheCgroupOfAPod(t *testing.T) {
	period := func(n *Host) { n.CFSPeriod = 50000 }
	free := func(n *Host) { n.NoCFSQuota = true }
	none := resources("", "", "", "")
	for _, row := range []struct {
		name string
		own  v1.ResourceRequirements
		more *v1.ResourceRequirements // of another container
		node func(*Host)
		want string // shares, quota and period, memory
	}{
		{"nothing is asked for", none, nil, nil, "2 0/0 0"},
		{"nothing is asked for, with a period of the node's", none, nil, period, "2 0/50000 0"},
		{"all is limited as it is asked for", resources("1", "1", "1Mi", "1Mi"), nil, nil, "1024 100000/100000 1048576"},
		{"with a period of the node's", resources("1", "1", "1Mi", "1Mi"), nil, period, "1024 50000/50000 1048576"},
		{"without limits of cpu on the node", resources("1", "1", "1Mi", "1Mi"), nil, free, "1024 -1/100000 1048576"},
		{"more is allowed than is asked for", resources("500m", "1", "1Mi", "2Mi"), nil, nil, "512 100000/100000 2097152"},
		{"one of two is not limited", resources("500m", "1", "1Mi", "2Mi"), &none, nil, "512 0/100000 0"},
		{"one of two is not limited, nor is any on the node", resources("500m", "1", "1Mi", "2Mi"), &none, free, "512 0/100000 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := specNode()
			if row.node != nil {
				row.node(n)
			}
			p := specPod(func(p *v1.Pod) {
				p.Spec.Containers[0].Resources = row.own
				if row.more != nil {
					p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "b", Resources: *row.more})
				}
			})
			r := PodCgroup(p, n)
			if got := fmt.Sprintf("%d %d/%d %d", r.Shares, r.Quota, r.Period, r.Memory); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}
