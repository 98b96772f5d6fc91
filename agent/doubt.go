package agent

import (
	"os"

	"monopod/agent/checkpoint"
	"monopod/agent/status"
)

// inDoubt reports whether the last agent may have died of one of the pods that
// the checkpoints tell of. These must not start before it is certain that they
// are still wanted: else who removes the manifest that the agent dies of would
// not get rid of it.
func (a *Agent) inDoubt() bool {
	if a.once != nil {
		return false
	}
	err := os.Remove(a.root.Path(checkpoint.CleanEnd))
	if err == nil {
		err = status.SyncDir(a.root.Dir) // a power cut must not bring it back
	}
	if err != nil && len(a.source.Known) > 0 {
		a.log.Warn("the last agent did not end by itself, as far as can be told: pods start once the manifests were read, or cannot be", "pods", len(a.source.Known))
	}
	return err != nil
}
