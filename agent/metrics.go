package agent

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/agent/server"
)

// newMetrics returns the metrics of an agent. The state of its parts is read at each
// scrape.
func (a *Agent) newMetrics(m *node.Node) *metrics.Metrics {
	return metrics.New(metrics.Config{
		NodeName: a.cfg.NodeName, Version: node.KubeletVersion(a.version), CgroupV2: m.Base.CgroupV2,
		State: a.containedState,
	})
}

// pages returns the pages of metrics and stats. They hold no secrets.
func (a *Agent) pages() []server.Handler {
	all, used := metricPaths(a.metrics), a.stats.Pages()
	for _, path := range slices.Sorted(maps.Keys(used)) {
		all = append(all, server.Handler{Path: path, AtOnce: metrics.AtOnce, Handler: used[path]})
	}
	return append(all, server.Handler{Path: "/stats/hour", AtOnce: metrics.AtOnce, Handler: a.trends})
}

func metricPaths(m *metrics.Metrics) []server.Handler {
	return []server.Handler{
		{Path: "/metrics", AtOnce: metrics.AtOnce, Handler: metrics.Handler(m.Registry())},
		{Path: "/metrics/probes", AtOnce: metrics.AtOnce, Handler: metrics.Handler(m.ProbeRegistry())},
	}
}

// observeVolume counts a volume that was set up.
func (a *Agent) observeVolume(v *v1.Volume, start time.Time, err error) {
	a.metrics.Volume(podspec.VolumePlugin(v), start, err)
}
