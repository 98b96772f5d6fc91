package overview

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/metrics"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/status"
)

// State derives the gauges from the present state.
func State(store *status.Store, w *pleg.Watch, desired map[string]bool) metrics.State {
	s := metrics.State{RuntimeUp: w.Up(), EventStream: w.Streams.Load(), WorkingPods: map[metrics.Working]int{}, Volumes: map[metrics.Volumes]int{}}
	t := w.Lister.Counts()
	s.RunningPods, s.Containers = t.Pods, t.Containers
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
	if status.WasRefused(&p.Status) || podstatus.WaitsForPods(&p.Status) {
		return // it has no worker
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
