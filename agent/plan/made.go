package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/manifests"
)

// Made reports whether a container of the desired pod was ever created, or is being created; last
// is the last report of the pod.
func (s *Facts) Made(last *v1.PodStatus) bool {
	if i := s.Instance(); i != nil && len(i.Containers) > 0 {
		return true
	}
	for key, run := range s.Running {
		if run.Makes && run.UID == string(s.Pod.UID) && key != SandboxFailure {
			return true
		}
	}
	return last != nil && slices.ContainsFunc(slices.Concat(last.InitContainerStatuses, last.ContainerStatuses), wasMade)
}

// wasMade reports whether a container was ever created.
func wasMade(c v1.ContainerStatus) bool { return c.ContainerID != "" || c.RestartCount > 0 }

// OperationOf returns what a pass over a pod is for, in the kubelet's terms; changed: the update
// differs from the one before.
func OperationOf(desired *manifests.Pod, known map[string]*checkpoint.Checkpoint, changed bool) metrics.Operation {
	if desired == nil {
		return metrics.Kill
	}
	c := known[string(desired.UID)]
	switch {
	case c == nil:
		return metrics.Create
	case c.IsRemoving():
		return metrics.Kill
	case c.Ended() != "":
		return metrics.Terminated
	case changed:
		return metrics.Update
	}
	return metrics.Sync
}
