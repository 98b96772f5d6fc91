package instance

import (
	"monopod/agent/pleg"
	"monopod/agent/volume"
)

// removeTerminationLog removes the termination log of a removed container. If
// that fails, the log goes when the container starts again, or with the pod.
func (f *Files) removeTerminationLog(c *pleg.Container, uid string) {
	if c.TerminationLog == "" {
		return
	}
	if err := volume.RemoveTerminationLog(f.Root.Dir, uid, c.Name, c.TerminationLog); err != nil {
		f.Log.Warn("termination log removal failed", "container", c.Name, "err", err)
	}
}

// SweepTerminationLogs removes the termination logs of a container's attempts
// that no longer exist or were never created. It removes none if an attempt that
// may still run does not say which log it has.
func (f *Files) SweepTerminationLogs(i *pleg.Instance, uid, name string) {
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
	if err := volume.SweepTerminationLogs(f.Root.Dir, uid, name, keep); err != nil {
		f.Log.Warn("termination log removal failed", "container", name, "err", err)
	}
}

// SweepAllTerminationLogs sweeps those of all containers of an instance. i is
// nil if the runtime has nothing of it.
func (f *Files) SweepAllTerminationLogs(i *pleg.Instance, uid string) {
	for _, name := range volume.HaveTerminationLogs(f.Root.Dir, uid) {
		f.SweepTerminationLogs(i, uid, name)
	}
}
