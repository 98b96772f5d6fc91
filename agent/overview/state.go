package overview

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/metrics"
	"monopod/agent/pinning"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/status"
)

// State derives the gauges from the present state.
func State(store *status.Store, w *pleg.Watch, pins *pinning.Keeper, desired map[string]bool) metrics.State {
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
	s.SharedCPUs, s.OwnCPUs = pins.Pools()
	return s
}

// Active returns the reported pods that a kubelet calls active: those on the node that have not
// ended.
func Active(store *status.Store) []*v1.Pod {
	return slices.DeleteFunc(store.Pods(), func(p *v1.Pod) bool { return !hasWorker(p) || isOver(p) })
}

// hasWorker reports whether a reported pod is on the node; else it only waits.
func hasWorker(p *v1.Pod) bool {
	return !status.WasRefused(&p.Status) && !podstatus.WaitsForPods(&p.Status)
}

func isOver(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
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
	if !hasWorker(p) {
		return
	}
	is := metrics.Working{Lifecycle: "sync", Config: "orphan"}
	if desired {
		is.Config = "desired"
	}
	switch {
	case isOver(p):
		is.Lifecycle = "terminated"
	case p.DeletionTimestamp != nil:
		is.Lifecycle = "terminating"
	}
	s.WorkingPods[is]++
	if isOver(p) {
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
