package agent

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/metrics"
	"monopod/agent/safefile"
	"monopod/agent/server"
	"monopod/agent/status"
)

// newMetrics returns the metrics of an agent; its parts are asked for when
// somebody scrapes.
func (a *Agent) newMetrics(m *machine) *metrics.Metrics {
	return metrics.New(metrics.Config{
		NodeName: a.cfg.NodeName, Version: kubeletVersion(a.version), CgroupV2: m.base.CgroupV2,
		State: a.containedState,
	})
}

// pages are what is served of what is counted and used. Nothing in it is secret.
func (a *Agent) pages() []server.Handler {
	all, used := metricPaths(a.metrics), a.stats.Pages()
	for _, path := range slices.Sorted(maps.Keys(used)) {
		all = append(all, server.Handler{Path: path, Handler: used[path]})
	}
	return all
}

func metricPaths(m *metrics.Metrics) []server.Handler {
	return []server.Handler{
		{Path: "/metrics", Handler: metrics.Handler(m.Registry())},
		{Path: "/metrics/probes", Handler: metrics.Handler(m.ProbeRegistry())},
	}
}

// stateOf gathers what follows from what is known by now.
func stateOf(store *status.Store, w *watch, wanted map[string]bool) metrics.State {
	s := metrics.State{RuntimeUp: w.Up(), EventStream: w.streams.Load(), WorkingPods: map[metrics.Working]int{}, Volumes: map[metrics.Volumes]int{}}
	if t := w.lister.tally.Load(); t != nil {
		s.RunningPods, s.Containers = t.pods, t.containers
	}
	s.DesiredPods = len(wanted)
	for _, p := range store.Pods() {
		countPod(&s, p, wanted[p.Namespace+"/"+p.Name])
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
	s.Logs = w.logUse()
	return s
}

// logUse returns what the logs of the containers that run take of the disk.
func (w *watch) logUse() []metrics.Log {
	var out []metrics.Log
	all, seen := w.logs.Load(), map[string]bool{}
	if all == nil {
		return nil
	}
	for _, c := range *all {
		dir := filepath.Dir(c.Log)
		if seen[dir] { // of two attempts
			continue
		}
		seen[dir] = true
		if l, ok := logUseOf(dir); ok {
			out = append(out, l)
		}
	}
	return out
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

// countPod counts a pod that is reported. desired: manifests give it.
func countPod(s *metrics.State, p *v1.Pod, desired bool) {
	if wasRefused(&p.Status) || wasHeld(&p.Status) {
		return // nobody works on it
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
		plugin := volumePlugin(&p.Spec.Volumes[k])
		s.Volumes[metrics.Volumes{Plugin: plugin}]++
		if made {
			s.Volumes[metrics.Volumes{Plugin: plugin, Actual: true}]++
		}
	}
}

// volumePlugin returns the kubelet's name of what makes a volume.
func volumePlugin(v *v1.Volume) string {
	switch {
	case v.HostPath != nil:
		return "host-path"
	case v.ConfigMap != nil:
		return "configmap"
	case v.Secret != nil:
		return "secret"
	case v.DownwardAPI != nil:
		return "downward-api"
	case v.Projected != nil:
		return "projected"
	case v.Image != nil:
		return "image"
	case v.EmptyDir != nil, v.VolumeSource == v1.VolumeSource{}:
		return "empty-dir"
	}
	return "other"
}

// logUseOf returns what the logs of a container take, those that were rotated
// included. Whose they are the folder says: .../<namespace>_<pod>_<uid>/<container>.
func logUseOf(dir string) (metrics.Log, bool) {
	whose := strings.Split(filepath.Base(filepath.Dir(dir)), "_")
	d, err := safefile.OpenDir(dir, logDepth)
	if err != nil {
		return metrics.Log{}, false
	}
	defer d.Close()
	if len(whose) != 3 {
		return metrics.Log{}, false
	}
	l := metrics.Log{Namespace: whose[0], Pod: whose[1], UID: whose[2], Container: filepath.Base(dir)}
	err = d.Each(func(name string) error {
		if s, err := d.Stat(name); err == nil && s.IsRegular() {
			l.Bytes += s.Size()
		}
		return nil
	})
	return l, err == nil
}
