package agent

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
	"monopod/agent/server"
	"monopod/agent/status"
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
		all = append(all, server.Handler{Path: path, Handler: used[path]})
	}
	return all
}

func metricPaths(m *metrics.Metrics) []server.Handler {
	return []server.Handler{
		{Path: "/metrics", AtOnce: metrics.AtOnce, Handler: metrics.Handler(m.Registry())},
		{Path: "/metrics/probes", AtOnce: metrics.AtOnce, Handler: metrics.Handler(m.ProbeRegistry())},
	}
}

// stateOf derives the gauges from the present state.
func stateOf(store *status.Store, w *pleg.Watch, desired map[string]bool) metrics.State {
	s := metrics.State{RuntimeUp: w.Up(), EventStream: w.Streams.Load(), WorkingPods: map[metrics.Working]int{}, Volumes: map[metrics.Volumes]int{}}
	if t := w.Lister.Counts.Load(); t != nil {
		s.RunningPods, s.Containers = t.Pods, t.Containers
	}
	s.DesiredPods = len(desired)
	for _, p := range store.Pods() {
		countPod(&s, p, desired[p.Namespace+"/"+p.Name])
	}
	m := store.Manifests()
	s.ManifestFiles = len(m.Files)
	countProblems(&s, m.Problems)
	for _, f := range m.Files {
		if f.Held {
			s.HeldFiles++
		}
		countProblems(&s, f.Problems)
	}
	s.Logs = w.LogUse()
	return s
}

func countProblems(s *metrics.State, all []status.Problem) {
	for _, p := range all {
		if p.Warning {
			s.ManifestWarnings++
		} else {
			s.ManifestErrors++
		}
	}
}

// countPod counts a reported pod. desired: it has a manifest.
func countPod(s *metrics.State, p *v1.Pod, desired bool) {
	if podstatus.WasRefused(&p.Status) || podstatus.WasHeld(&p.Status) {
		return // no worker works on it
	}
	is := metrics.Working{Lifecycle: "sync", Config: "orphan"}
	if desired {
		is.Config = "desired"
	}
	over := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	switch {
	case over:
		is.Lifecycle = "terminated"
	case p.DeletionTimestamp != nil:
		is.Lifecycle = "terminating"
	}
	s.WorkingPods[is]++
	if over {
		return
	}
	s.ActivePods++
	made := false
	for _, c := range p.Status.Conditions {
		made = made || c.Type == v1.PodReadyToStartContainers && c.Status == v1.ConditionTrue
	}
	for k := range p.Spec.Volumes {
		plugin := podspec.VolumePlugin(&p.Spec.Volumes[k])
		s.Volumes[metrics.Volumes{Plugin: plugin}]++
		if made {
			s.Volumes[metrics.Volumes{Plugin: plugin, Actual: true}]++
		}
	}
}

// ProbeCounter returns the observer that counts the results of probes.
func ProbeCounter(m *metrics.Metrics) func(*probe.Target, probe.Kind, probe.Finding, time.Duration) {
	results := map[probe.Finding]string{probe.Succeeded: metrics.ProbeSuccessful, probe.Failed: metrics.ProbeFailed, probe.Unknown: metrics.ProbeUnknown}
	return func(t *probe.Target, k probe.Kind, f probe.Finding, took time.Duration) {
		m.Probe(metrics.Probed{Kind: k.Title(), Container: t.Container.Name, Pod: t.Pod.Name, Namespace: t.Pod.Namespace, UID: string(t.Pod.UID)}, results[f], took)
	}
}

// observeVolume counts a volume that was set up.
func (a *Agent) observeVolume(v *v1.Volume, start time.Time, err error) {
	a.metrics.Volume(podspec.VolumePlugin(v), start, err)
}
