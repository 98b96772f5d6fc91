package pleg

import (
	"fmt"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/manifests/defaults"
)

// MarkAccepted applies the version of the pod that was accepted in place of the one that the
// containers were created for: an attempt of a former version gets a kill decision and starts again
// as the accepted one, whatever its exit code; the others stop as the accepted version requires.
// The runtime's record of them cannot change.
func (i *Instance) MarkAccepted(c *checkpoint.Checkpoint) {
	if c.Revision == 0 {
		return
	}
	for k := range i.Containers {
		n := &i.Containers[k]
		if n.Outdated = n.Revision < c.Changed[n.Name]; n.Outdated {
			n.Kill = &checkpoint.KillDecision{Cause: checkpoint.CauseUpdate, Grace: n.Grace, Requested: true,
				Reason: fmt.Sprintf("Container %s definition changed, will be restarted", n.Name)}
			continue
		}
		if n.Revision == c.Revision {
			continue
		}
		if s := c.Pod.Spec.TerminationGracePeriodSeconds; s != nil {
			n.Grace = defaults.Seconds(*s)
		}
		for _, spec := range podspec.AllContainers(c.Pod) {
			if spec.Name == n.Name {
				n.PreStop = podspec.PreStop(spec)
			}
		}
	}
}
