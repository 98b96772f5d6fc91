package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/agent/stats"
)

// measured returns of what the resource use is measured: the node and its pods.
func (a *Agent) measured(m *node.Node) stats.Config {
	return stats.Config{
		CRI: a.cri, Labels: a.root.Marks.Selector,
		Node: a.cfg.NodeName, Booted: m.Boot.Since, Root: a.cfg.Root, PodLogs: a.cfg.PodLogs,
		Pods:    a.store.Pods,
		Cgroup:  func(p *v1.Pod) string { return m.Now().Cgroups.Pod(podspec.CgroupClass(p), string(p.UID)) },
		AllPods: func() string { return m.Now().Cgroups.Pods() },
		Log:     a.log,
	}
}

// nodeUsage returns what the node uses, with its disks.
func (a *Agent) nodeUsage(ctx context.Context) (*statsapi.NodeStats, error) {
	sum, err := a.stats.Summary(ctx, true)
	if err != nil {
		return nil, err
	}
	return &sum.Node, nil
}
