package worker

import (
	"monopod/agent/plan"
	"monopod/agent/volume"
)

// lookAround adds to the facts what the machine, and not the runtime, has of the pod.
func (w *Worker) lookAround(s *plan.Facts) {
	if s.Pod == nil {
		return
	}
	s.NoNetwork = w.Watch.NoNetwork()
	s.CgroupGone = s.Instance().Sandbox() != nil && s.Checkpoint().Ended() == "" && w.Cgroups.Vanished(s.Pod.Pod)
	s.Volumes = w.releasesVolumes(s)
}

// releasesVolumes reports whether the pod has ended and has volumes that are to go. If
// another pod has its uid, they are that pod's.
func (w *Worker) releasesVolumes(s *plan.Facts) bool {
	if s.Checkpoint().Ended() == "" || w.Settings().KeepVolumes || !volume.HasVolumes(w.Root.Dir, string(s.Pod.UID)) {
		return false
	}
	_, taken := w.Uids.Other(s.Pod.UID, w.Key)
	return !taken
}
