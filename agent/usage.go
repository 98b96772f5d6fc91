package agent

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/stats"
)

// newStats returns what tells how much the node and its pods use.
func (a *Agent) newStats(m *machine) *stats.Collector {
	return stats.New(stats.Config{
		CRI: a.cri, Labels: map[string]string{labelInstance: a.root.instance},
		Node: a.cfg.NodeName, Booted: m.boot.Since, Root: a.cfg.Root, PodLogs: a.cfg.PodLogs,
		Pods:    a.store.Pods,
		Cgroup:  func(p *v1.Pod) string { return m.Now().Cgroups.Pod(cgroupClass(p), string(p.UID)) },
		AllPods: func() string { return m.Now().Cgroups.Pods() },
		Log:     a.log,
	})
}
