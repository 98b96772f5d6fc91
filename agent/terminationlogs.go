package agent

import (
	"monopod/agent/volume"
)

// removeTerminationLog removes the termination log of a container that was
// removed. One that cannot go now goes when the container starts again, or with
// the pod.
func (w *worker) removeTerminationLog(s *situation, a action) {
	i := s.Observed.Instances[a.UID]
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.ID != a.ID || c.TerminationLog == "" {
			continue
		}
		if err := volume.RemoveTerminationLog(w.root.dir, a.UID, a.Name, c.TerminationLog); err != nil {
			w.log.Warn("termination log of a former container cannot be removed", "container", a.Name, "err", err)
		}
	}
}

// sweepTerminationLogs removes the termination logs of a container's attempts
// that are there no more, or never came to be. Of one that may still run and of
// which it is not known which log it has, nothing is removed.
func (w *worker) sweepTerminationLogs(i *instance, uid, name string) {
	var keep []string
	if i != nil {
		for k := range i.Containers {
			c := &i.Containers[k]
			if c.Name != name {
				continue
			}
			if c.TerminationLog == "" && c.live() {
				return
			}
			keep = append(keep, c.TerminationLog)
		}
	}
	if err := volume.SweepTerminationLogs(w.root.dir, uid, name, keep); err != nil {
		w.log.Warn("termination logs of former containers cannot be removed", "container", name, "err", err)
	}
}

// sweepOnce sweeps the termination logs that former agents left, in the first
// pass that sees the pod.
func (w *worker) sweepOnce(seen *observed) {
	if w.swept {
		return
	}
	w.swept = true
	for uid := range w.known {
		for _, name := range volume.HaveTerminationLogs(w.root.dir, uid) {
			w.sweepTerminationLogs(seen.Instances[uid], uid, name)
		}
	}
}
