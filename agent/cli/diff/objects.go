package diff

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/objects"
	"monopod/agent/update"
	"monopod/manifests"
)

// AddObjects adds what other contents of ConfigMaps and Secrets mean to the pods that run: those
// that manifests give now in place of those that the agent has. An object that no manifest gives
// any more is kept for the pods that need it. A pod that is made new starts with what is new.
func (r *Report) AddObjects(k *client.Known, desired []*manifests.Pod, has, given []*manifests.Object) {
	before := objects.NewSet(has)
	after := before.With(given)
	versions := map[string]*v1.Pod{}
	for _, p := range desired {
		versions[p.Key().String()] = p.Pod
	}
	for name, p := range staying(k) {
		at := slices.IndexFunc(r.Pods, func(p Pod) bool { return p.Name == name })
		version := asAccepted(p)
		if versions[name] != nil {
			version = versions[name]
		}
		was := Pod{Name: name, Action: Unchanged}
		if at >= 0 {
			was = r.Pods[at]
		}
		was.Objects = was.edits(p, version, before, after)
		switch {
		case len(was.Objects) == 0:
			continue
		case at >= 0:
			r.Pods[at] = was
		default:
			r.Pods = append(r.Pods, was)
		}
		if was.Action == Unchanged {
			r.Changes++
		}
	}
	slices.SortFunc(r.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
}

// edits says what the edits mean to a pod, as it is reported; version is the one that runs then.
func (p *Pod) edits(reported, version *v1.Pod, before, after *objects.Set) (lines []string) {
	if p.Action == New || p.Action == Removed || p.Action == planned[update.Replace] || ended(reported) {
		return nil
	}
	var fresh []string // containers that restart anyway
	if p.Difference != nil {
		fresh = p.Difference.Named(update.Restart)
	}
	runs := func(container string) bool {
		return !slices.Contains(fresh, container) &&
			slices.ContainsFunc(slices.Concat(reported.Status.InitContainerStatuses, reported.Status.ContainerStatuses), func(s v1.ContainerStatus) bool {
				return s.Name == container && s.State.Running != nil
			})
	}
	for _, edit := range objects.Edits(version, before, after, runs) {
		lines = append(lines, edit.String())
	}
	return lines
}
