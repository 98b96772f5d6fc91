package outlook

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/objects"
	"monopod/agent/rollout"
	"monopod/agent/update"
)

// edits returns the effects of other contents of ConfigMaps and Secrets on the containers of a pod
// that continue to run: the requested contents compared with the present ones. An object that no
// manifest gives any more is kept for the pods that need it. Containers that start use the new
// contents.
func (n *Node) edits(p *Pod, r *rollout.Record) (lines []string) {
	reported, isReported := n.Reported(r.Key)
	version, over := r.Identity()
	if n.NoObjects || !isReported || version == nil || over || p.Action == New || p.Action == Replaced {
		return nil
	}
	if r.Offered != nil {
		version = r.Offered
	}
	runs := func(container string) bool { return !p.restarts(container) && isRunning(&reported.Status, container) }
	for _, edit := range objects.Edits(version.Pod, n.Objects, n.after, runs) {
		lines = append(lines, edit.String())
	}
	return lines
}

// restarts reports whether a container restarts for another difference.
func (p *Pod) restarts(container string) bool {
	return p.Difference != nil && slices.Contains(p.Difference.Named(update.Restart), container)
}

func isRunning(s *v1.PodStatus, container string) bool {
	return slices.ContainsFunc(slices.Concat(s.InitContainerStatuses, s.ContainerStatuses), func(c v1.ContainerStatus) bool {
		return c.Name == container && c.State.Running != nil
	})
}
