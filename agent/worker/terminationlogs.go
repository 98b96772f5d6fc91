package worker

import (
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/volume"
)

// removeTerminationLog removes the termination log of a container that was
// removed. One that cannot go now goes when the container starts again, or with
// the pod.
func (w *Worker) removeTerminationLog(s *plan.Facts, a plan.Action) {
	i := s.Observed.Instances[a.UID]
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.ID != a.ID || c.TerminationLog == "" {
			continue
		}
		if err := volume.RemoveTerminationLog(w.Root.Dir, a.UID, a.Name, c.TerminationLog); err != nil {
			w.Log.Warn("termination log of a former container cannot be removed", "container", a.Name, "err", err)
		}
	}
}

// sweepTerminationLogs removes the termination logs of a container's attempts
// that are there no more, or never came to be. Of one that may still run and of
// which it is not known which log it has, nothing is removed.
func (w *Worker) sweepTerminationLogs(i *pleg.Instance, uid, name string) {
	var keep []string
	if i != nil {
		for k := range i.Containers {
			c := &i.Containers[k]
			if c.Name != name {
				continue
			}
			if c.TerminationLog == "" && c.Live() {
				return
			}
			keep = append(keep, c.TerminationLog)
		}
	}
	if err := volume.SweepTerminationLogs(w.Root.Dir, uid, name, keep); err != nil {
		w.Log.Warn("termination logs of former containers cannot be removed", "container", name, "err", err)
	}
}

// sweepOnce sweeps the termination logs that former agents left, in the first
// pass that sees the pod.
func (w *Worker) sweepOnce(seen *pleg.Observed) {
	if w.swept {
		return
	}
	w.swept = true
	for uid := range w.Known {
		for _, name := range volume.HaveTerminationLogs(w.Root.Dir, uid) {
			w.sweepTerminationLogs(seen.Instances[uid], uid, name)
		}
	}
}
