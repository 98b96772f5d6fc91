package worker

import (
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/volume"
)

// removeTerminationLog removes the termination log of a removed container. If
// that fails, the log goes when the container starts again, or with the pod.
func (w *Worker) removeTerminationLog(s *plan.Facts, a plan.Action) {
	i := s.Observed.Instances[a.UID]
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.ID != a.ID || c.TerminationLog == "" {
			continue
		}
		if err := volume.RemoveTerminationLog(w.Root.Dir, a.UID, a.Name, c.TerminationLog); err != nil {
			w.Log.Warn("termination log removal failed", "container", a.Name, "err", err)
		}
	}
}

// sweepTerminationLogs removes the termination logs of a container's attempts
// that no longer exist or were never created. It removes none if an attempt that
// may still run does not say which log it has.
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
		w.Log.Warn("termination log removal failed", "container", name, "err", err)
	}
}

// sweepOnce sweeps the termination logs that previous agents left, in the first
// pass that observes the pod.
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
